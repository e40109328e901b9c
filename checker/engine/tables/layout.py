"""The layout of a model in numbers, computed before the exploration.

Actors over several columns, joint rules and properties are *groups*: columns that are read together, each through a
projection. A column's distinct projections are its *slots*. Joint rules are the bits of the masks: a rule is evaluated
only in rows where none of its projections says "never". Properties with identical reads are one group, a *bundle*:
their values are looked up only once.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import numpy as np

from checker.engine.model import Kind, Model, Read

LAST_BIT = 63  # of a word with a bit for each bundle


class Role(Enum):
    """The purpose of a group."""

    ACTOR = "actor"
    RULE = "rule"
    BUNDLE = "bundle"


class Group(NamedTuple):
    """A range of reads, from `first` to first + width, for the actor, rule or bundle at `position`."""

    role: Role
    position: int
    first: int
    width: int


class Bundle(NamedTuple):
    """The positions of properties with the same reads that are evaluated in the same states and recorded in the same
    way.
    """

    group: int
    properties: tuple[int, ...]


class EvaluationMode(Enum):
    """The use of a bundle's verdict: counted in all states, counted in final states, or also stored for each state."""

    EVERY_STATE = "every state"
    FINAL = "final"
    LIVENESS = "liveness"


def evaluation_mode(kind: Kind) -> EvaluationMode:
    """The use of the verdicts of properties of this kind."""
    return (
        EvaluationMode.FINAL
        if kind is Kind.FINAL
        else EvaluationMode.LIVENESS
        if kind.is_liveness
        else EvaluationMode.EVERY_STATE
    )


class Gate(NamedTuple):
    """A bit of a word of the mask; it is cleared if this slot of a column says "never"."""

    slot: int
    word: int
    bit: int


class ModelLayout:
    """The groups, slots, bundles and masks of a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._reads: list[tuple[int, int]] = []
        self.groups: list[Group] = []
        self.slots: list[list[Read]] = [[] for _ in model.columns]
        self.own_rules: list[list[int]] = [[] for _ in model.columns]
        self.actor_group: dict[int, int] = {}
        joint: list[int] = []
        for position, actor in enumerate(model.actors):
            if len(actor.columns) > 1:
                reads = tuple(Read(column) for column in actor.columns)
                self.actor_group[position] = self._group(Role.ACTOR, position, reads)
        for position, rule in enumerate(model.rules):
            if len(rule.reads) == 1:
                self.own_rules[model.index[rule.reads[0].column]].append(position)
            else:
                joint.append(self._group(Role.RULE, position, rule.reads))
        self.bundles: list[Bundle] = []
        alike: dict[tuple[EvaluationMode, tuple[Read, ...]], list[int]] = {}
        for position, prop in enumerate(model.properties):
            alike.setdefault((evaluation_mode(prop.kind), prop.reads), []).append(position)
        for (_, reads), positions in alike.items():
            group = self._group(Role.BUNDLE, len(self.bundles), reads)
            self.bundles.append(Bundle(group, tuple(positions)))
        self.read_rows = np.array(self._reads, np.uint32).reshape(-1, 2)
        self._gate(joint)
        self._observe(model)

    def _group(self, role: Role, position: int, reads: Iterable[Read]) -> int:
        first = len(self._reads)
        for read in reads:
            column = self._model.index[read.column]
            if read not in self.slots[column]:
                self.slots[column].append(read)
            self._reads.append((column, self.slots[column].index(read)))
        self.groups.append(Group(role, position, first, len(self._reads) - first))
        return len(self.groups) - 1

    def _gate(self, joint: list[int]) -> None:
        """Number the joint rules as bits, and find the columns that can disable one of them."""
        self.joint = np.array(joint, np.uint32)
        self.words = max(1, -(-len(joint) // 64))
        bits = (1 << len(joint)) - 1
        self.all_joint = np.array([bits >> 64 * w & (1 << 64) - 1 for w in range(self.words)], np.uint64)
        self.gates: list[list[Gate]] = [[] for _ in self.slots]
        self.joint_slots: list[set[int]] = [set() for _ in self.slots]
        for bit, number in enumerate(joint):
            group = self.groups[number]
            for column, slot in self._reads[group.first : group.first + group.width]:
                self.joint_slots[column].add(slot)
                if self.slots[column][slot].projection is not None:
                    self.gates[column].append(Gate(slot, bit // 64, bit % 64))
        gated = [column for column, gates in enumerate(self.gates) if gates]
        self.masked = np.array(gated or [0], np.uint32)

    def _observe(self, model: Model) -> None:
        """Number the bundles that are part of a judgement, and find the bundles that read each slot of a column.

        `readers` has for each column its slots with the bits of their bundles. The last bit stands for all further
        bundles.
        """
        kinds = [evaluation_mode(model.properties[bundle.properties[0]].kind) for bundle in self.bundles]
        self.judged = [number for number, kind in enumerate(kinds) if kind is not EvaluationMode.FINAL]
        self.final = [number for number, kind in enumerate(kinds) if kind is EvaluationMode.FINAL]
        bits: list[dict[int, int]] = [{} for _ in self.slots]
        for place, number in enumerate(self.judged):
            group = self.groups[self.bundles[number].group]
            for column, slot in self._reads[group.first : group.first + group.width]:
                bits[column][slot] = bits[column].get(slot, 0) | 1 << min(place, LAST_BIT)
        self.readers = [list(column.items()) for column in bits]
