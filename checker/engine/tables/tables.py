"""The results of the functions of a model as integers: each function is called once for each distinct argument.

`Tables` answers the kernels' questions by calling the model: `fill(keys)` adds the entries that a pass found missing.
`Interner` numbers the arguments and the results. These two modules are the only ones that write the arrays.

`Verdicts` numbers the answers of properties. A *verdict* has the answers of a bundle's properties. A *judgement* has
the verdict of each bundle that is evaluated in all states. A state inherits the judgement of its parent, and only the
bundles that read something different are evaluated again. There are few judgements, since the answers of properties
rarely differ.

Rule: an entry once written never changes.
"""

import time
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import Memo, Vector
from checker.engine.contract import check, moves
from checker.engine.kernels import build_kernels, hash_tables, jit, move_kernels
from checker.engine.model import TRIVIAL, AnswerError, Finding, Kind, Model, Send
from checker.engine.result import SEED, Evaluations
from checker.engine.steps import forget_steps
from checker.engine.tables.interner import NO_ACTION, CellValue, FailedCall, Interner, Node
from checker.engine.tables.layout import Bundle, Group, ModelLayout, Role

Array = np.ndarray[Any, Any]


class BundleVerdict(NamedTuple):
    """The answers of a bundle: the positions of the properties with a premise, and of those with a finding.

    If a property or a projection raises, the last of `found` is a number of `Model.raising`.
    """

    bundle: Bundle
    premises: tuple[int, ...] = ()
    found: tuple[int, ...] = ()


class Verdicts:
    """The numbers of verdicts and judgements, which only grow.

    Judgement 0 has only trivial verdicts. `judged` and `final` have for each bundle of a judgement, or of final states,
    its group and the number of its verdict if a projection says "never".
    """

    def __init__(self, model: Model, layout: ModelLayout) -> None:
        self._model = model
        # If a projection says "never", a bundle is trivial: the first verdicts, in the order of the bundles.
        self.verdicts = [BundleVerdict(bundle) for bundle in layout.bundles]
        self._numbers = {verdict: number for number, verdict in enumerate(self.verdicts)}
        self.judged, self.final = (
            np.array([(layout.bundles[n].group, n) for n in part], np.uint32).reshape(-1, 2)
            for part in (layout.judged, layout.final)
        )
        self._places = {number: place for place, number in enumerate(layout.judged)}
        self._bundles = {bundle: number for number, bundle in enumerate(layout.bundles)}
        self.judgements = Vector(np.uint32, max(1, len(layout.judged)))
        self._known: dict[tuple[int, ...], int] = {}
        self._judgement(tuple(layout.judged) or (0,))

    def number(self, bundle: Bundle, answers: Iterable[tuple[int, Any]]) -> int:
        """The number of a verdict, from the positions and answers of a bundle's properties."""
        checked = list(answers)
        premises = tuple(n for n, answer in checked if answer is not TRIVIAL and answer is not FailedCall.FAILED)
        found = tuple(position for position, answer in checked if isinstance(answer, Finding))
        raises = any(answer is FailedCall.FAILED for _, answer in checked)
        verdict = BundleVerdict(bundle, premises, (*found, self._raising(bundle)) if raises else found)
        number = self._numbers.setdefault(verdict, len(self.verdicts))
        if number == len(self.verdicts):
            self.verdicts.append(verdict)
        return number

    def _raising(self, bundle: Bundle) -> int:
        """The number of a state in which a property of a bundle raises; one without a successor is expanded first."""
        is_final = self._model.properties[bundle.properties[0]].kind is Kind.FINAL
        return self._model.raising[is_final]

    def judging(self, times: Array, first: Array) -> build_kernels.Judging:
        """The judgement of states by a kernel, with these counters."""
        return build_kernels.Judging(self.judged, self.judgements.view, times, first)

    def judgement_after(self, judgement: int, verdict: int) -> int:
        """The number of the judgement in which this verdict replaces that of its bundle."""
        after = self.judgements.view[judgement].tolist()
        after[self.place(verdict)] = verdict
        return self._judgement(tuple(after))

    def place(self, verdict: int) -> int:
        """The place of a verdict's bundle in a judgement."""
        return self._places[self._bundles[self.verdicts[verdict].bundle]]

    def found(self, judgement: int) -> list[int]:
        """The positions of the properties with a finding in a judgement, except those of liveness."""
        return [
            position
            for verdict in self._verdicts_in(judgement)
            for position in verdict.found
            if not self._model.property_at(position).kind.is_liveness
        ]

    def premises(self, judgement: int) -> list[int]:
        """The positions of the properties whose premise holds in a judgement."""
        return [position for verdict in self._verdicts_in(judgement) for position in verdict.premises]

    def _verdicts_in(self, judgement: int) -> list[BundleVerdict]:
        numbers = self.judgements.view[judgement].tolist() if self._places else ()
        return [self.verdicts[number] for number in numbers]

    def evaluations(self, tally: Array, final: Array) -> dict[str, Evaluations]:
        """The evaluations of each property, from the numbers of times of judgements and of verdicts in final states."""
        counts = [Evaluations() for _ in self._model.properties]
        for verdict, times in zip(self.verdicts, self._totals(tally, final).tolist(), strict=True):
            for position in verdict.bundle.properties:
                counts[position].states += times
            for position in verdict.premises:
                counts[position].premise += times
        return {prop.name: count for prop, count in zip(self._model.properties, counts, strict=True)}

    def _totals(self, tally: Array, final: Array) -> Array:
        """The number of times that each verdict was reached."""
        totals = np.zeros(len(self.verdicts), np.uint64)
        totals[: len(final)] += final[: len(totals)]
        for place in self._places.values():
            np.add.at(totals, self.judgements.view[: len(tally), place], tally[: self.judgements.size])
        return totals

    def _judgement(self, verdicts: tuple[int, ...]) -> int:
        number = self._known.setdefault(verdicts, self.judgements.size)
        if number == self.judgements.size:
            self.judgements.append(verdicts)
        return number


IMPOSSIBLE = int(hash_tables.IMPOSSIBLE)


class Tables(Interner):
    """All known results of a model's functions. Only `fill`, `row` and `cell` may raise ModelError.

    If a function fails, its key has no answer and is one of `failed`, and a verdict or a class says so; the first such
    error is kept in `error`. A search then finds the state.
    """

    def __init__(self, model: Model, seed: int = SEED, *, symmetric: bool = False) -> None:
        super().__init__(model, seed, symmetric=symmetric)
        self.failed = Memo()
        forget_steps(model)  # here, since a step is judged once for all searches of these tables
        self.seconds = 0.0  # in `fill`
        self.memo = Memo()
        self.verdicts = Verdicts(model, self._layout)
        self._learnt: dict[int, tuple[int, int, int]] = {}
        self._steps_named = [f"the step of {actor.name!r}" for actor in model.actors]
        self._columns_of = [[model.index[column] for column in actor.columns] for actor in model.actors]
        self._targets = {actor.name: self._target(position) for position, actor in enumerate(model.actors)}
        self._group_rows = np.array(
            [(group.first, group.width, self._new_id(Node(n, ()))) for n, group in enumerate(self._layout.groups)],
            np.uint32,
        ).reshape(-1, 3)

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
                continue
            try:
                if operation == 0 and isinstance(entity := self._ids[subject], CellValue):
                    self._list_own(subject, entity.column, entity.value)
                elif key not in self._learnt:
                    self._learn(key)
            except AnswerError as error:
                self.note_error(error)
                self.failed.insert({key + 1: (0, 0, 0)})  # a model without groups has the key 0
        self.memo.insert(self._learnt)
        self._learnt = {}

    def _memoised(self, subject: int, operation: int) -> int:
        """The memo's value for a subject and an operation; a new one is inserted at the end of `fill`."""
        key = subject << 32 | operation
        if (learnt := self._learnt.get(key)) is not None:
            return learnt[0]
        value = self.memo.get(key)
        return self._learn(key) if value is None else value

    def _learn(self, key: int) -> int:
        subject, operation = key >> 32, key & 0xFFFFFFFF
        value, change, entity = self._value(subject, operation), (0, 0), self._ids[subject]
        after = value & 0xFFFFFFFF
        if isinstance(entity, CellValue) and after != IMPOSSIBLE:
            change = self._change(entity.column, subject, after)
        self._learnt[key] = value, *change
        return value

    def _value(self, subject: int, operation: int) -> int:
        entity, (actor, argument) = self._ids[subject], self._operands[operation]
        if isinstance(entity, CellValue):
            return self._apply(actor, argument, (entity.value,), subject)
        group = self._layout.groups[entity.group]
        if len(entity.values) == group.width:
            return self._apply(actor, argument, entity.values, subject)
        node = self._new_id(Node(entity.group, (*entity.values, argument)))
        if len(entity.values) + 1 == group.width:
            self._complete(node, group, (*entity.values, argument))
        return node

    def _apply(self, position: int, operation: Any, values: tuple[Any, ...], subject: int) -> int:
        actor, who = self.model.actors[position], self._steps_named[position]
        outcome = self.functions.step(who, actor, values, operation)
        if outcome is None:
            return IMPOSSIBLE
        entries = self._entries(outcome.sends, who)
        columns, after = self._columns_of[position], outcome.values
        if position not in self._layout.actor_group:
            cell = subject if after[0] is values[0] else self.cell(columns[0], after[0], who)
            return self._effect(NO_ACTION, tuple(entries)) << 32 | cell
        changed: list[int] = []
        for column, value, new_value in zip(columns, values, after, strict=True):
            if new_value is not value:
                old, new = self._cells[column][value], self.cell(column, new_value, who)
                changed += self._set(column, old, new) if old != new else ()
        return self._effect(NO_ACTION, (*changed, *entries)) << 32 | subject

    # -- moves and properties --------------------------------------------------------------------------------

    def _list_own(self, cell: int, column: int, value: Any) -> None:
        """List the moves of a column's own rules for a value of it."""
        moves: list[int] = []
        for position in self._layout.own_rules[column]:
            part = self._shown(self.model.rules[position].reads[0], value)
            if part is not None:
                moves += self._moves(position, part, cell)
        self._set_list(cell, moves)

    def _complete(self, node: int, group: Group, values: tuple[Any, ...]) -> None:
        """Finish a node with all values of its group: list a rule's moves, or evaluate a bundle's properties."""
        if group.role is Role.RULE:
            self._check_shown(values)
            self._set_list(node, self._moves(group.position, values))
        elif group.role is Role.BUNDLE:
            bundle = self._layout.bundles[group.position]
            answers = [(position, self._answer(position, values)) for position in bundle.properties]
            self.cells.view[node, move_kernels.LISTED] = self.verdicts.number(bundle, answers)

    def _answer(self, position: int, values: tuple[Any, ...]) -> Any:
        """The answer of a property, or that it failed."""
        prop = self.model.properties[position]
        try:
            self._check_shown(values)
            return self.functions.call(f"the property {prop.name!r}", partial(check, prop), values)
        except AnswerError as error:
            self.note_error(error)
            return FailedCall.FAILED

    def _check_shown(self, values: tuple[Any, ...]) -> None:
        """Raises AnswerError if a projection failed to show one of these values."""
        if self.error is not None and any(value is FailedCall.FAILED for value in values):
            raise self.error

    def _moves(self, position: int, arguments: tuple[Any, ...], cell: int | None = None) -> list[int]:
        """The effects of the moves that a rule lists; `cell` is the cell that the rule read, if it read only one."""
        rule = self.model.rules[position]
        source = f"the rule {rule.name!r}"
        rule_moves = self.functions.call(source, partial(moves, self.model, rule), *arguments)
        ids = []
        for move in rule_moves:
            label = self._label(rule.name, move)
            entries = self._entries(move.sends, source)
            resolved = entries if cell is None else self._resolved(cell, entries)
            if resolved is not None:
                ids.append(self._effect(label, tuple(resolved)))
        return ids

    def _resolved(self, cell: int, entries: list[int]) -> list[int] | None:
        """A move's entries with its first operation already carried out if that reads only `cell`; None: impossible.

        The cell is known when the move is listed, so the kernels need not look it up.
        """
        entity = self._ids[cell]
        if not isinstance(entity, CellValue) or not entries or entries[0] >> 32 != entity.column:
            return entries
        value = self._memoised(cell, entries[0] & 0xFFFFFFFF)
        after, follows = value & 0xFFFFFFFF, value >> 32
        if after == IMPOSSIBLE:
            return None
        return [*self._set(entity.column, cell, after), *self.effect_words(follows), *entries[1:]]

    def _entries(self, sends: Iterable[Send], source: str) -> list[int]:
        entries = []
        for name, operation in sends:
            actor, target = self._targets[name]
            entries.append(target << 32 | self._operation(actor, operation, source))
        return entries

    def _target(self, actor: int) -> tuple[int, int]:
        """The position of an actor, and the target of operations for it."""
        group = self._layout.actor_group.get(actor)
        column = self.model.index[self.model.actors[actor].columns[0]]
        return actor, column if group is None else int(move_kernels.GROUP) | group

    def _set_list(self, node: int, moves: list[int]) -> None:
        """Store copies of a node's moves contiguously, so that a kernel reads them in sequence."""
        self.cells.view[node, move_kernels.LISTED] = self.entries.size << 32 | len(moves) if moves else 0
        for move in moves:
            length = int(self.entries.view[move]) & 0xFFFFFFFF
            self.entries.extend(self.entries.view[move : move + 1 + length].tolist())

    def answers(self, missing: Array, counters: Array) -> hash_tables.Answers:
        """The known answers for a kernel, with room for missing keys and counters, which become 0."""
        counters[:] = 0
        return hash_tables.Answers(
            len(self.model.columns),
            self._group_rows,
            self._layout.read_rows,
            self.classes.view,
            self.bases.view,
            self.memo.data,
            self.memo.shift,
            self.cells.view.reshape(-1),
            self.entries.view,
            self.masks.view,
            self.masked,
            self.joint,
            self.failed.data,
            self.failed.shift,
            missing,
            counters,
        )
