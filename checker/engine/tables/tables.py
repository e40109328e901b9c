"""The results of the functions of a model as integers: each function is called once for each distinct argument.

`Tables` interns values (cells), operations, effects and the arguments of rules and properties (nodes), and answers the
kernels' questions by calling the model: `fill(keys)` adds the entries that a pass found missing. The layout of the
arrays is described in `move_kernels` and `hash_tables`; this module is the only one that writes them.

Rules: ids only grow, an entry once written never changes, and cells and nodes share one sequence of ids, so that the
upper half of a key of the memo identifies its subject.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import Memo, Vector
from checker.engine.contract import same_types, unhashable
from checker.engine.kernels import hash_tables, jit, move_kernels, row_kernels
from checker.engine.model import Kind, Model, ModelError, Move, Read, Row, Send
from checker.engine.result import SEED
from checker.engine.tables.calls import ModelCalls
from checker.engine.tables.fingerprints import CellNumbers
from checker.engine.tables.images import Images
from checker.engine.tables.layout import Group, ModelLayout, Role
from checker.engine.tables.observer import TablesObserver
from checker.engine.tables.verdicts import Verdicts

NO_ACTION = 0
QUESTIONS = -(1 << 30)  # in the place of an actor: the operation is a question of the reduction
IMPOSSIBLE = int(hash_tables.IMPOSSIBLE)


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


class Tables:
    """All known results of a model's functions. Only `fill`, `row` and `cell` may raise ModelError."""

    def __init__(self, model: Model, seed: int = SEED, *, symmetric: bool = False) -> None:
        self.model = model
        self.functions = ModelCalls()
        self.seconds = 0.0  # in `fill`
        self.memo = Memo()
        self.cells, self.entries = Vector(np.uint64, int(move_kernels.FIELDS)), Vector(np.uint64)
        self.classes, self.bases = Vector(np.uint32), Vector(np.uint32)
        self.places = Vector(np.uint32)  # of each cell among those of its column
        self.asks = Vector(np.uint32)  # for each cell of a channel: the question whether its delivery may be drained
        self.contents = Vector(np.uint32)  # the numbers of local states and of contents, for stubborn sets
        self._subjects: dict[Hashable, int] = {}
        self.observer: TablesObserver | None = None
        self._results: dict[int, int] | None = None  # the memo's values for operations on cells, for Python
        self.labels: list[Label] = [Label("")]  # by number; NO_ACTION is the first
        self.fairness = tuple(dict.fromkeys(p.fair for p in model.properties if p.kind is Kind.EVENTUALLY))
        self._labelled: dict[Label, int] = {}
        self._numbers = CellNumbers(model.columns, seed)
        self._ids: list[CellValue | Node] = []
        self._zobrist = list[int]()  # the number of each cell in fingerprints, as in `cells`
        self._seen = list[tuple[int, ...]]()  # the classes of each cell, as in `classes`
        self._steps_named = [f"the step of {actor.name!r}" for actor in model.actors]
        self._cells: list[dict[Any, int]] = [{} for _ in model.columns]
        self._images: Images | None = None
        if symmetric and model.symmetry is not None:
            self._images = Images(model, model.symmetry, self._numbers, self._cells)
        self._by_column = [Vector(np.uint32) for _ in model.columns]
        self._in_columns = np.zeros(0, np.uint32), np.zeros(0, np.uint64)  # `cells_by_column`, as last asked for
        self._operations: dict[tuple[int, Any], int] = {}
        self._operands: list[tuple[int, Any]] = [(0, None)]  # operation ids start at 1, so that no key is 0
        self._effects: dict[tuple[int, tuple[int, ...]], int] = {}
        self._learnt: dict[int, tuple[int, int, int]] = {}
        self._effect(NO_ACTION, ())  # effect 0 is empty
        self._layout = layout = ModelLayout(model)
        self._targets = {actor.name: self._target(position) for position, actor in enumerate(model.actors)}
        self.masks = Vector(np.uint64, layout.words)
        self._alike: dict[tuple[int, tuple[int, ...]], int] = {}
        self.joint, self.masked = layout.joint, layout.masked
        self.verdicts = Verdicts(model, layout)
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

    def column_of(self, cell: int) -> int:
        """The position of the column that a cell is a value of; -1 for a node."""
        what = self._ids[cell]
        return what.column if isinstance(what, CellValue) else -1

    def cell(self, column: int, value: Any, source: str) -> int:
        """The id of a value in a column; a new one also gets classes, moves and masks."""
        try:
            known = self._cells[column].get(value)
        except TypeError as error:
            raise unhashable(f"{source} puts into the column {self.model.columns[column].name!r}", value) from error
        if known is not None:
            if (there := self._ids[known][1]) is not value:
                same_types(there, value, source)
            return known
        cell = self._new_id(CellValue(column, value), self._numbers.number(column, value))
        self._cells[column][value] = cell
        self.places.view[cell] = self._by_column[column].size
        self._by_column[column].append(cell)
        self.bases.view[cell] = self.classes.size
        seen = [self._class(column, slot, value) for slot in range(len(self._layout.slots[column]))]
        self.classes.extend(seen)
        self._seen[cell] = tuple(seen)
        shown = tuple(seen[slot] for slot in self._layout.joint_slots[column])
        alike = self._alike.setdefault((column, shown), cell)
        record, numbers = self.cells.view[cell], self.cells.view[:, move_kernels.ZOBRIST]
        record[move_kernels.ALIKE], record[move_kernels.JOINT] = alike, numbers[alike]
        if not self._layout.own_rules[column]:
            record[move_kernels.LISTED] = 0
        self.masks.view[cell] = self._layout.all_joint
        for slot, word, bit in self._layout.gates[column]:
            if seen[slot] == int(hash_tables.NEVER):
                self.masks.view[cell, word] &= ~np.uint64(1 << bit)
        return cell

    def _new_id(self, what: CellValue | Node, number: int = 0) -> int:
        self._ids.append(what)
        self._zobrist.append(number)
        self._seen.append(())
        self.cells.append((move_kernels.UNLISTED, number, 0, 0))
        for vector in (self.bases, self.places, self.asks, self.contents, self.masks):
            vector.append_zero()
        if self._images is not None:
            if isinstance(what, CellValue):
                self._images.append(what.column, what.value, number)
            else:
                self._images.append_node()
        return len(self._ids) - 1

    def _shown(self, read: Read, value: Any) -> tuple[Any] | None:
        if read.projection is None:
            return (value,)
        shown = self.functions.call(f"the projection of {read.column!r}", read.projection, value)
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

    def _effect(self, label: int, words: tuple[int, ...]) -> int:
        """The place of an effect among the entries."""
        place = self._effects.get((label, words))
        if place is None:
            place = self._effects[label, words] = self.entries.size
            self.entries.append(label << 32 | len(words))
            self.entries.extend(words)
        return place

    def _target(self, actor: int) -> tuple[int, int]:
        """The position of an actor, and the target of operations for it."""
        group = self._layout.actor_group.get(actor)
        column = self.model.index[self.model.actors[actor].columns[0]]
        return actor, column if group is None else int(move_kernels.GROUP) | group

    def _entries(self, sends: Iterable[Send], source: str) -> list[int]:
        """The words of an effect for operations that are sent."""
        entries = []
        for name, operation in sends:
            if name not in self._targets:
                raise ModelError(f"{source} sends {operation!r} to {name!r}, and no actor has that name")
            actor, target = self._targets[name]
            number = self._operation(actor, operation, source)
            if self.observer is not None:
                self.observer.sent(actor, number, source)
            entries.append(target << 32 | number)
        return entries

    def _change(self, column: int, before: int, after: int) -> tuple[int, int]:
        """The change of the fingerprint, and the bundles that may judge differently, when a cell replaces another."""
        if before == after:
            return 0, 0
        one, other, affected = self._seen[before], self._seen[after], 0
        for slot, bundles in self._layout.readers[column]:
            if one[slot] != other[slot]:
                affected |= bundles
        return self._zobrist[before] ^ self._zobrist[after], affected

    def _set(self, column: int, before: int, after: int) -> tuple[int, int, int]:
        """The words of an effect that replaces a cell."""
        return (int(move_kernels.SET) | column) << 32 | after, *self._change(column, before, after)

    def _moves(self, position: int, arguments: tuple[Any, ...], cell: int | None = None) -> list[int]:
        """The effects of the moves that a rule lists; `cell` is the cell that the rule read, if it read only one."""
        rule = self.model.rules[position]
        source = f"the rule {rule.name!r}"
        listed = self.functions.call(source, lambda *a: tuple(rule.moves(*a) or ()), *arguments)
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
        source = f"the fairness of the rule {rule!r}"
        units = tuple(self.functions.call(source, fair, rule, move) for fair in self.fairness)
        label = Label(move.action, units)
        try:
            number = self._labelled.setdefault(label, len(self.labels))
        except TypeError as error:
            raise unhashable(f"{source} gives", units) from error
        if number == len(self.labels):
            self.labels.append(label)
        return number

    def _resolved(self, cell: int, entries: list[int]) -> list[int] | None:
        """A move's entries with its first operation already carried out if that reads only `cell`; None: impossible.

        The cell is known when the move is listed, so the kernels need not look it up.
        """
        what = self._ids[cell]
        if not isinstance(what, CellValue) or not entries or entries[0] >> 32 != what.column:
            return entries
        value = self._memoised(cell, entries[0] & 0xFFFFFFFF)
        after, follows = value & 0xFFFFFFFF, value >> 32
        if after == IMPOSSIBLE:
            return None
        count = int(self.entries.view[follows]) & 0xFFFFFFFF
        sent = self.entries.view[follows + 1 : follows + 1 + count].tolist()
        return [*self._set(what.column, cell, after), *sent, *entries[1:]]

    def _list_own(self, cell: int, column: int, value: Any) -> None:
        """List the moves of a column's own rules for a value of it."""
        moves: list[int] = []
        for position in self._layout.own_rules[column]:
            shown = self._shown(self.model.rules[position].reads[0], value)
            if shown is not None:
                moves += self._moves(position, shown, cell)
        self._set_list(cell, moves)
        if self.observer is not None:
            self.observer.listed(cell)

    def _set_list(self, node: int, moves: list[int]) -> None:
        """Store copies of a node's moves contiguously, so that a kernel reads them in sequence."""
        self.cells.view[node, move_kernels.LISTED] = self.entries.size << 32 | len(moves) if moves else 0
        for move in moves:
            length = int(self.entries.view[move]) & 0xFFFFFFFF
            self.entries.extend(self.entries.view[move : move + 1 + length].tolist())

    def _complete(self, node: int, group: Group, values: tuple[Any, ...]) -> None:
        """Finish a node with all values of its group: list a rule's moves, or evaluate a bundle's properties."""
        if group.role is Role.RULE:
            moves = self._moves(group.position, values)
            self._set_list(node, moves)
            if self.observer is not None:
                self.observer.enabled(group.position, moves)
        elif group.role is Role.BUNDLE:
            bundle = self._layout.bundles[group.position]
            answers = [(position, self._answer(position, values)) for position in bundle.properties]
            self.cells.view[node, move_kernels.LISTED] = self.verdicts.number(bundle, answers)

    def _answer(self, position: int, values: tuple[Any, ...]) -> Any:
        prop = self.model.properties[position]
        return self.functions.call(f"the property {prop.name!r}", prop.check, *values)

    def fingerprints(self, cells: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The fingerprints of rows of cells."""
        found: np.ndarray[Any, np.dtype[np.uint64]] = np.bitwise_xor.reduce(
            self.cells.view[cells, move_kernels.ZOBRIST], axis=1
        )
        if self._images is not None:
            columns, images = np.uint64(cells.shape[1]), self._images.array
            of_class = row_kernels.find_fingerprint_of_class
            pairs = zip(cells.astype(np.uint32), found, strict=True)
            return np.array([of_class(row, columns, one, images) for row, one in pairs], np.uint64)
        return found

    def cells_by_column(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """All cells in the order of their columns and places (u32), and where each column begins there (u64)."""
        if len(self._in_columns[0]) < sum(column.size for column in self._by_column):
            parts = [column.view for column in self._by_column]
            firsts = np.cumsum([0, *(len(part) for part in parts[:-1])]).astype(np.uint64)
            self._in_columns = np.concatenate(parts), firsts
        return self._in_columns

    @property
    def images(self) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
        """The images of cells for the fingerprints of a symmetric search; None in any other search."""
        return None if self._images is None else self._images.array

    @property
    def flat_cells(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The records of all cells and nodes, as the kernels take them."""
        return self.cells.view.reshape(-1)

    def readers(self) -> tuple[Any, ...]:
        """The arrays for folding the reads of groups, in the order of the parameters of the kernels."""
        fixed = (self._group_rows, self._layout.read_rows)
        return (*fixed, self.classes.view, self.bases.view, self.memo.data, self.memo.shift)

    # -- for the reduction -----------------------------------------------------------------------------------

    def remember(self) -> None:
        """Keep results for Python too, which asks for many more than the search; nothing was learnt yet."""
        self._results = {}

    def question(self, question: Hashable) -> int:
        """The number of a question, which kernels use like that of an operation."""
        number = self._operations.setdefault((QUESTIONS, question), len(self._operands))
        if number == len(self._operands):
            self._operands.append((QUESTIONS, question))
        return number

    def subject(self, value: Hashable) -> int:
        """The number of a value that is no cell, for questions about it."""
        known = self._subjects.get(value)
        if known is None:
            known = self._subjects[value] = self._new_id(CellValue(-1, value))
        return known

    def subject_of(self, number: int) -> Any:
        """The value with this number."""
        return self._ids[number][1]

    def result(self, cell: int, operation: int) -> int:
        """The memo's value for an operation on a cell, which is carried out if it is new. Raises ModelError."""
        return self._memoised(cell, operation)

    def listing(self, cell: int) -> tuple[int, int]:
        """The place of a cell's own moves in `entries`, and their number. Raises ModelError."""
        if int(self.cells.view[cell, move_kernels.LISTED]) == int(move_kernels.UNLISTED):
            what = self._ids[cell]
            assert isinstance(what, CellValue)
            self._list_own(cell, what.column, what.value)
        listed = int(self.cells.view[cell, move_kernels.LISTED])
        return listed >> 32, listed & 0xFFFFFFFF

    def is_listed(self, cell: int) -> bool:
        """Whether a cell's own moves are known."""
        return int(self.cells.view[cell, move_kernels.LISTED]) != int(move_kernels.UNLISTED)

    def effect_words(self, effect: int) -> list[int]:
        """The words of an effect."""
        if not effect:
            return []
        entries = self.entries.view
        count = int(entries[effect]) & 0xFFFFFFFF
        found: list[int] = entries[effect + 1 : effect + 1 + count].tolist()
        return found

    def affected(self, before: int, after: int) -> int:
        """The bundles that may judge differently when a cell replaces another one of its column, as bits."""
        return self._change(self.column_of(before), before, after)[1]

    def known_cells(self, column: int) -> list[int]:
        """The cells of a column."""
        found: list[int] = self._by_column[column].view.tolist()
        return found

    def joint_rules(self) -> list[int]:
        """The positions of the rules that read several columns, in the order of the bits of masks."""
        return [self._layout.groups[number].position for number in self._layout.joint.tolist()]

    def slots_of(self, position: int, column: int) -> list[int]:
        """The places, among what is shown of a column, of that which a rule reads of it."""
        reads = (read for read in self.model.rules[position].reads if read.column == self.model.columns[column].name)
        return [self._layout.slots[column].index(read) for read in reads]

    def shown(self, cell: int) -> tuple[int, ...]:
        """The numbers of all that is shown of a cell: equal numbers show the same."""
        return self._seen[cell]

    @property
    def joint_bundles(self) -> int:
        """The bundles that read several columns, as bits; the last bit also stands for all further bundles."""
        return self._layout.joint_bundles()

    def effect(self, words: Iterable[int]) -> int:
        """The place of an effect with these words, and without an action."""
        return self._effect(NO_ACTION, tuple(words))

    def operation_number(self, send: Send) -> int:
        """The number of an operation for an actor."""
        return self._operation(self.model.actor_index[send.actor], send.operation, "a channel")

    def operation(self, number: int) -> Any:
        """The operation, or the question, with this number."""
        return self._operands[number][1]

    def flush(self) -> None:
        """Store the results that were computed outside of `fill`; no kernel runs."""
        self.memo.insert(self._learnt)
        self._learnt = {}

    def revise(self, cell: int, question: int, value: int) -> None:
        """Replace the answer to a question; no kernel runs."""
        self.flush()
        self.memo.replace(cell << 32 | question, value)

    # -- answering the kernels -------------------------------------------------------------------------------

    def fill(self, keys: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        """Answer these keys, which may repeat: each gets an entry of the memo or, with operation 0, a list of moves."""
        began = time.perf_counter()
        with jit.collector_off():
            self._answer_keys(keys)
        self.seconds += time.perf_counter() - began

    def _answer_keys(self, keys: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        for key in sorted(set(keys.tolist())):
            subject, operation = key >> 32, key & 0xFFFFFFFF
            if subject & int(move_kernels.JUDGEMENT):
                judgement = self.verdicts.judgement_after(subject ^ int(move_kernels.JUDGEMENT), operation - 1)
                self._learnt[key] = judgement, 0, 0
            elif operation == 0 and isinstance(what := self._ids[subject], CellValue):
                self._list_own(subject, what.column, what.value)
            elif key not in self._learnt:
                self._learn(key)
        self.memo.insert(self._learnt)
        self._learnt = {}

    def _memoised(self, subject: int, operation: int) -> int:
        """The memo's value for a subject and an operation; a new one is inserted at the end of `fill`."""
        key = subject << 32 | operation
        if self._results is not None:
            value = self._results.get(key)
            return self._learn(key) if value is None else value
        if (learnt := self._learnt.get(key)) is not None:
            return learnt[0]
        value = self.memo.get(key)
        return self._learn(key) if value is None else value

    def _learn(self, key: int) -> int:
        """Find the value of a key that the memo lacks."""
        subject, operation = key >> 32, key & 0xFFFFFFFF
        if self._operands[operation][0] == QUESTIONS:
            value = self._answer_question(subject, operation)
            if value is None:
                return 0
            self._learnt[key] = value, 0, 0
            return value
        value, change, what = self._value(subject, operation), (0, 0), self._ids[subject]
        after = value & 0xFFFFFFFF
        if isinstance(what, CellValue) and after != IMPOSSIBLE:
            change = self._change(what.column, subject, after)
        self._learnt[key] = value, *change
        if self._results is not None:
            self._results[key] = value
        if self.observer is not None and isinstance(what, CellValue):
            self.observer.learnt(subject, operation, value)
        return value

    def _answer_question(self, cell: int, question: int) -> int | None:
        assert self.observer is not None  # only an observer asks
        return self.observer.answer(cell, self._operands[question][1])

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
        actor, who = self.model.actors[position], self._steps_named[position]
        outcome = self.functions.step(who, actor, values, operation)
        if outcome is None:
            return IMPOSSIBLE
        if len(outcome.values) != len(actor.columns):
            raise ModelError(f"{who} returns {len(outcome.values)} values for {len(actor.columns)} columns")
        entries = self._entries(outcome.sends, who)
        columns = [self.model.index[column] for column in actor.columns]
        after = [self.cell(column, value, who) for column, value in zip(columns, outcome.values, strict=True)]
        if position not in self._layout.actor_group:
            return self._effect(NO_ACTION, tuple(entries)) << 32 | after[0]
        before = [self._cells[column][value] for column, value in zip(columns, values, strict=True)]
        changed = [
            word
            for column, old, new in zip(columns, before, after, strict=True)
            if old != new
            for word in self._set(column, old, new)
        ]
        return self._effect(NO_ACTION, (*changed, *entries)) << 32 | subject
