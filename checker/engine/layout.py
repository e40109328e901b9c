"""What a model's shape comes to in numbers, before anything is explored.

Actors over several columns, joint rules and properties are *groups*: columns that are read together, each through a
projection. A column's distinct projections are its *slots*. Joint rules are the bits of the masks: a rule is looked
at only in rows where none of its projections says "never". Properties that read exactly the same are one group, a
*bundle*: what they read is looked up once.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import numpy as np

from checker.engine.model import Kind, Model, Read


class Role(Enum):
    """What a group is for."""

    ACTOR = "actor"
    RULE = "rule"
    BUNDLE = "bundle"


class Group(NamedTuple):
    """Reads first to first + width belong together, for the actor, rule or bundle of that position."""

    role: Role
    position: int
    first: int
    width: int


class Bundle(NamedTuple):
    """The positions of properties that read the same, are held to the same states, and are kept alike."""

    group: int
    properties: tuple[int, ...]


class Held(Enum):
    """What a bundle's verdict is for: it is counted, or counted where runs end, or also kept for each state."""

    USUAL = "usual"
    FINAL = "final"
    LIVENESS = "liveness"


def held(kind: Kind) -> Held:
    """How properties of a kind are held."""
    return Held.FINAL if kind is Kind.FINAL else Held.LIVENESS if kind.is_liveness else Held.USUAL


class Gate(NamedTuple):
    """Where a slot of a column says "never", this bit of this word of the mask is out."""

    slot: int
    word: int
    bit: int


class Layout:
    """The numbers."""

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
        alike: dict[tuple[Held, tuple[Read, ...]], list[int]] = {}
        for position, prop in enumerate(model.properties):
            alike.setdefault((held(prop.kind), prop.reads), []).append(position)
        for (_, reads), positions in alike.items():
            group = self._group(Role.BUNDLE, len(self.bundles), reads)
            self.bundles.append(Bundle(group, tuple(positions)))
        self.read_rows = np.array(self._reads, np.uint32).reshape(-1, 2)
        self._gate(joint)

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
        """Number the joint rules as bits, and find the columns that have a say in them."""
        self.joint = np.array(joint, np.uint32)
        self.words = max(1, -(-len(joint) // 64))
        every = (1 << len(joint)) - 1
        self.all_joint = np.array([every >> 64 * w & (1 << 64) - 1 for w in range(self.words)], np.uint64)
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
