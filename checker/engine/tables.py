"""The results of the functions of a model as integers: each function is called once for each distinct argument.

`Tables` interns values (cells), operations, effects and the arguments of rules and properties (nodes), and answers the
kernels' questions by calling the model: `fill(keys)` adds the entries that a pass found missing. The layout of the
arrays is described in `search_kernels` and `hash_tables`; this module is the only one that writes them.

Rules: ids only grow, an entry once written never changes, and cells and nodes share one sequence of ids, so that the
upper half of a key of the memo identifies its subject.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import Memo, Vector
from checker.engine.contract import call, same_types, step, unhashable
from checker.engine.kernels import hash_tables, search_kernels
from checker.engine.layout import Bundle, EvaluationMode, Group, ModelLayout, Role, evaluation_mode
from checker.engine.model import TRIVIAL, Finding, Kind, Model, ModelError, Move, Read, Row, Send, Trivial
from checker.engine.result import VALUE

VERIFIED_CALLS = 500  # the first calls of each function are made twice ...
VERIFIED_EVERY = 32  # ... and later each call with this number
NO_ACTION = 0


class Node(NamedTuple):
    """A prefix of the reads of a group: the group, and the values read so far."""

    group: int
    values: tuple[Any, ...]


class CellValue(NamedTuple):
    """A value of a column."""

    column: int
    value: Any


class Label(NamedTuple):
    """The action of a move, and its unit for each fairness of the model."""

    action: str
    units: tuple[Hashable, ...] = ()


class BundleVerdict(NamedTuple):
    """The answers of a bundle: the positions of the properties with a premise, and of those with a finding."""

    bundle: Bundle
    premises: tuple[int, ...] = ()
    found: tuple[int, ...] = ()


class Tables:
    """All known results of a model's functions. Only `fill`, `row` and `cell` may raise ModelError."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls, self.steps, self.seconds = 0, 0, 0.0  # calls of all functions, and of step functions among them
        self.work = 0  # the work of the calls, in transitions
        self.memo = Memo()
        self.zobrist, self.bases = Vector(np.uint64), Vector(np.uint32)
        self.listed, self.entries = Vector(np.uint64), Vector(np.uint64)
        self.classes, self.label_of = Vector(np.uint32), Vector(np.uint32)
        self.verdict_of = Vector(np.uint32)
        self.labels: list[Label] = [Label("")]  # by number; NO_ACTION is the first
        self.fairness = tuple(dict.fromkeys(p.fair for p in model.properties if p.kind is Kind.EVENTUALLY))
        self._labelled: dict[Label, int] = {}
        self._random = np.random.Generator(np.random.PCG64(0x51554F52))
        self._ids: list[CellValue | Node] = []
        self._cells: list[dict[Any, int]] = [{} for _ in model.columns]
        self._operations: dict[tuple[int, Any], int] = {}
        self._operands: list[tuple[int, Any]] = [(0, None)]  # operation ids start at 1, so that no key is 0
        self._effects: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        self._called: dict[str, int] = {}
        self._learnt: dict[int, int] = {}
        self._effect(NO_ACTION, ())  # effect 0 is empty
        self._layout = layout = ModelLayout(model)
        self.masks = Vector(np.uint64, layout.words)
        self.projection_class = Vector(np.uint32)  # for each cell, the first with the same view for the joint rules
        self._alike: dict[tuple[int, tuple[int, ...]], int] = {}
        self.joint, self.masked = layout.joint, layout.masked
        # If a projection says "never", a bundle is trivial: the first verdicts, in the order of the bundles.
        self.verdicts = [BundleVerdict(bundle) for bundle in layout.bundles]
        self._verdicts = {verdict: number for number, verdict in enumerate(self.verdicts)}
        self._group_rows = np.array(
            [(group.first, group.width, self._new_id(Node(n, ()))) for n, group in enumerate(layout.groups)], np.uint32
        ).reshape(-1, 3)

    # -- interning -------------------------------------------------------------------------------------------

    def row(self, row: Row) -> list[int]:
        """The cells of a row of values, which are interned if they are new. Raises ModelError."""
        return [self.cell(column, value, "the initial state") for column, value in enumerate(row)]

    def values(self, cells: Iterable[int]) -> Row:
        """The values of a row of cells."""
        found = [self._ids[cell] for cell in cells]
        return tuple(cell.value for cell in found if isinstance(cell, CellValue))

    def cell(self, column: int, value: Any, source: str) -> int:
        """The id of a value in a column; a new one also gets classes, moves and masks."""
        try:
            known = self._cells[column].get(value)
        except TypeError as error:
            raise unhashable(f"{source} puts into the column {self.model.columns[column].name!r}", value) from error
        if known is not None:
            same_types(self._ids[known][1], value, source)
            return known
        cell = self._new_id(CellValue(column, value))
        self._cells[column][value] = cell
        self.bases.view[cell] = self.classes.size
        seen = [self._class(column, slot, value) for slot in range(len(self._layout.slots[column]))]
        self.classes.extend(seen)
        shown = tuple(seen[slot] for slot in self._layout.joint_slots[column])
        self.projection_class.view[cell] = self._alike.setdefault((column, shown), cell)
        if not self._layout.own_rules[column]:
            self.listed.view[cell] = 0
        self.masks.view[cell] = self._layout.all_joint
        for slot, word, bit in self._layout.gates[column]:
            if seen[slot] == int(hash_tables.NEVER):
                self.masks.view[cell, word] &= ~np.uint64(1 << bit)
        return cell

    def _new_id(self, what: CellValue | Node) -> int:
        self._ids.append(what)
        if len(self._ids) > self.zobrist.size:
            self.zobrist.extend(self._random.integers(0, 1 << 64, 1024, dtype=np.uint64))
        self.bases.append(0)
        self.listed.append(search_kernels.UNLISTED)
        self.verdict_of.append(0)
        self.masks.append((0,) * self._layout.words)
        self.projection_class.append(0)
        return len(self._ids) - 1

    def _shown(self, read: Read, value: Any) -> tuple[Any] | None:
        if read.projection is None:
            return (value,)
        shown = self._call(f"the projection of {read.column!r}", read.projection, value)
        return None if shown is None else (shown,)

    def _class(self, column: int, slot: int, value: Any) -> int:
        """The id of the part of a value that a read shows; ids are unique to a read."""
        shown = self._shown(self._layout.slots[column][slot], value)
        if shown is None:
            return int(hash_tables.NEVER)
        source = f"a read of {self.model.columns[column].name!r}"
        return self._operation(-1 - column - slot * len(self.model.columns), shown[0], source)

    def _operation(self, actor: int, operation: Any, source: str) -> int:
        """The id of an operation for an actor; a negative actor is a read, and the operation is the part shown."""
        try:
            known = self._operations.setdefault((actor, operation), len(self._operands))
        except TypeError as error:
            raise unhashable(f"{source} gives", operation) from error
        if known == len(self._operands):
            self._operands.append((actor, operation))
        same_types(self._operands[known][1], operation, source)
        return known

    def _effect(self, label: int, entries: tuple[tuple[int, int], ...]) -> int:
        """The place of an effect among the entries."""
        place = self._effects.get((label, entries))
        if place is None:
            place = self._effects[label, entries] = self.entries.size
            self.entries.append(self.label_of.size << 32 | len(entries))
            self.entries.extend(target << 32 | operation for target, operation in entries)
            self.label_of.append(label)
        return place

    def _entries(self, sends: Iterable[Send], source: str) -> list[tuple[int, int]]:
        entries = []
        for name, operation in sends:
            actor = self.model.actor_index.get(name, -1)
            if actor < 0:
                raise ModelError(f"{source} sends {operation!r} to {name!r}, and no actor has that name")
            if actor in self._layout.actor_group:
                target = int(search_kernels.GROUP) | self._layout.actor_group[actor]
            else:
                target = self.model.index[self.model.actors[actor].columns[0]]
            entries.append((target, self._operation(actor, operation, source)))
        return entries

    def _moves(self, position: int, arguments: tuple[Any, ...], cell: int | None = None) -> list[int]:
        """The effects of the moves that a rule lists; `cell` is the cell that the rule read, if it read only one."""
        rule = self.model.rules[position]
        source = f"the rule {rule.name!r}"
        listed = self._call(source, lambda *a: tuple(rule.moves(*a) or ()), *arguments)
        ids = []
        for move in listed:
            if not isinstance(move, Move):
                raise ModelError(f"{source} lists {move!r}, which is not a Move")
            rule.check(move)
            label = self._label(rule.name, move)
            entries = self._entries(move.sends, source)
            resolved = entries if cell is None else self._resolved(cell, entries)
            if resolved is not None:
                ids.append(self._effect(label, tuple(resolved)))
        return ids

    def _label(self, rule: str, move: Move) -> int:
        units = tuple(self._call(f"the fairness of the rule {rule!r}", fair, rule, move) for fair in self.fairness)
        label = Label(move.action, units)
        try:
            number = self._labelled.setdefault(label, len(self.labels))
        except TypeError as error:
            raise unhashable(f"the fairness of the rule {rule!r} gives", units) from error
        if number == len(self.labels):
            self.labels.append(label)
        return number

    def _resolved(self, cell: int, entries: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
        """A move's entries with its first operation already carried out if that reads only `cell`; None: impossible.

        The cell is known when the move is listed, so the kernels need not look it up.
        """
        column = self._ids[cell]
        if not isinstance(column, CellValue) or not entries or entries[0][0] != column.column:
            return entries
        value = self._memoised(cell, entries[0][1])
        after, follows = value & 0xFFFFFFFF, value >> 32
        if after == int(hash_tables.IMPOSSIBLE):
            return None
        count = int(self.entries.view[follows]) & 0xFFFFFFFF
        sent = [divmod(int(entry), 1 << 32) for entry in self.entries.view[follows + 1 : follows + 1 + count]]
        return [(int(search_kernels.SET) | column.column, after), *sent, *entries[1:]]

    def _list_own(self, cell: int, column: int, value: Any) -> None:
        """List the moves of a column's own rules for a value of it."""
        moves: list[int] = []
        for position in self._layout.own_rules[column]:
            shown = self._shown(self.model.rules[position].reads[0], value)
            if shown is not None:
                moves += self._moves(position, shown, cell)
        self._set_list(cell, moves)

    def _set_list(self, node: int, moves: list[int]) -> None:
        """Store copies of a node's moves contiguously, so that a kernel reads them in sequence."""
        self.listed.view[node] = self.entries.size << 32 | len(moves) if moves else 0
        for move in moves:
            length = int(self.entries.view[move]) & 0xFFFFFFFF
            self.entries.extend(self.entries.view[move : move + 1 + length].tolist())

    def _complete(self, node: int, group: Group, values: tuple[Any, ...]) -> None:
        """Finish a node with all values of its group: list a rule's moves, or evaluate a bundle's properties."""
        if group.role is Role.RULE:
            self._set_list(node, self._moves(group.position, values))
        elif group.role is Role.BUNDLE:
            self.verdict_of.view[node] = self._verdict(self._layout.bundles[group.position], values)

    def _verdict(self, bundle: Bundle, values: tuple[Any, ...]) -> int:
        """The number of a verdict; there are few, since the answers of properties rarely differ."""
        answers = [(position, self._check(position, values)) for position in bundle.properties]
        verdict = BundleVerdict(
            bundle,
            tuple(position for position, answer in answers if answer is not TRIVIAL),
            tuple(position for position, answer in answers if isinstance(answer, Finding)),
        )
        number = self._verdicts.setdefault(verdict, len(self.verdicts))
        if number == len(self.verdicts):
            self.verdicts.append(verdict)
        return number

    def _check(self, position: int, values: tuple[Any, ...]) -> Finding | Trivial | None:
        prop = self.model.properties[position]
        answer = self._call(f"the property {prop.name!r}", prop.check, *values)
        if answer is None or answer is TRIVIAL or isinstance(answer, Finding):
            return answer
        raise ModelError(f"the property {prop.name!r} returned {answer!r}; Finding, None or TRIVIAL is right")

    def bundles(self, how: EvaluationMode) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """The bundles of one kind, in the form for `search_kernels.examine`."""
        properties = self.model.properties
        chosen = [
            (bundle.group, number)
            for number, bundle in enumerate(self._layout.bundles)
            if evaluation_mode(properties[bundle.properties[0]].kind) is how
        ]
        return np.array(chosen, np.uint32).reshape(-1, 2)

    def readers(self) -> tuple[Any, ...]:
        """The arrays for folding the reads of groups, in the order of the parameters of the kernels."""
        fixed = (self._group_rows, self._layout.read_rows)
        return (*fixed, self.classes.view, self.bases.view, self.memo.data, self.memo.shift)

    # -- answering the kernels -------------------------------------------------------------------------------

    def fill(self, keys: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        """Answer these keys, which may repeat: each gets an entry of the memo or, with operation 0, a list of moves."""
        began = time.perf_counter()
        for key in sorted(set(keys.tolist())):
            subject, operation = key >> 32, key & 0xFFFFFFFF
            what = self._ids[subject]
            if operation == 0 and isinstance(what, CellValue):
                self._list_own(subject, what.column, what.value)
            else:
                self._memoised(subject, operation)
        self.memo.insert(self._learnt)
        self._learnt = {}
        self.seconds += time.perf_counter() - began

    def _memoised(self, subject: int, operation: int) -> int:
        """The memo's value for a subject and an operation; a new one is inserted at the end of `fill`."""
        key = subject << 32 | operation
        if (known := self._learnt.get(key)) is not None:
            return known
        value = self.memo.get(key)
        if value is None:
            value = self._learnt[key] = self._value(subject, operation)
        return value

    def _value(self, subject: int, operation: int) -> int:
        what, (actor, argument) = self._ids[subject], self._operands[operation]
        if isinstance(what, CellValue):
            return self._apply(actor, argument, (what.value,), subject)
        group = self._layout.groups[what.group]
        if len(what.values) == group.width:
            return self._apply(actor, argument, what.values, subject)
        node = self._new_id(Node(what.group, (*what.values, argument)))
        if len(what.values) + 1 == group.width:
            self._complete(node, group, (*what.values, argument))
        return node

    def _apply(self, position: int, operation: Any, values: tuple[Any, ...], subject: int) -> int:
        actor = self.model.actors[position]
        who = f"the step of {actor.name!r}"
        self.steps += 1
        outcome = self._call(who, partial(step, actor), values, operation)
        if outcome is None:
            return int(hash_tables.IMPOSSIBLE)
        if len(outcome.values) != len(actor.columns):
            raise ModelError(f"{who} returns {len(outcome.values)} values for {len(actor.columns)} columns")
        entries = self._entries(outcome.sends, who)
        columns = [self.model.index[column] for column in actor.columns]
        after = [self.cell(column, value, who) for column, value in zip(columns, outcome.values, strict=True)]
        if position not in self._layout.actor_group:
            return self._effect(NO_ACTION, tuple(entries)) << 32 | after[0]
        changed = [
            (int(search_kernels.SET) | column, cell)
            for column, cell, value in zip(columns, after, values, strict=True)
            if self._cells[column].get(value) != cell
        ]
        return self._effect(NO_ACTION, (*changed, *entries)) << 32 | subject

    def _call(self, who: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the model; often twice, to check that it is deterministic. Raises ModelError."""
        self.calls += 1
        self.work += VALUE * len(arguments)
        answer = call(who, function, *arguments)
        called = self._called[who] = self._called.get(who, 0) + 1
        if called <= VERIFIED_CALLS or called % VERIFIED_EVERY == 0:
            self.work += VALUE * len(arguments)
            again = call(who, function, *arguments)
            if again != answer:
                raise ModelError(
                    f"{who} is not deterministic: of {arguments!r} it made first {answer!r}, then {again!r}. "
                    "The likely cause is a clock, a random number, a counter or other state outside its arguments, "
                    "or an argument that was changed in place."
                )
        return answer
