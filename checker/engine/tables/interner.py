"""The numbers of everything that the functions of a model get and give, for the kernels.

`Interner` numbers values (cells), operations, effects and the actions of moves. It also keeps what kernels need of each
cell: its number in fingerprints, the parts that each read shows, the rules that it disables. The layout of the arrays
is described in `move_kernels` and `hash_tables`.

A number in fingerprints is a keyed hash of a value's column and of its canonical text, which is the same in every
process (`contract.described`). It does not depend on the order of discovery, so that every search of a model with the
same seed gives a state the same fingerprint. Another seed gives independent numbers: two searches with different seeds
both miss a state only if it collides twice. Two values of one column with equal numbers are noticed when they meet. It
is an error if their texts differ. Values that hold other objects than data may have equal texts; they are numbered in
the order of discovery. In a symmetric model a cell has images: the numbers of its renamed values, which need not be
cells.

A function of a model must give equal answers to equal arguments, since each is called once for each distinct argument.
The first calls of every function, and some later ones, are therefore repeated and compared.

Rules: numbers only grow. Cells and nodes share one sequence of ids, so that the upper half of a key of the memo
identifies its subject.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import Vector
from checker.engine.contract import call, described, first_rows, project, rename, same_types, short, step, tells_apart
from checker.engine.kernels import hash_tables, move_kernels
from checker.engine.model import (
    Actor,
    AnswerError,
    Column,
    Kind,
    Model,
    ModelError,
    Move,
    Outcome,
    Read,
    Row,
    Symmetry,
)
from checker.engine.result import VALUE, FunctionCost
from checker.engine.tables.layout import ModelLayout


class CellNumbers:
    """The numbers of the values of each column, for one seed."""

    def __init__(self, columns: Sequence[Column], seed: int) -> None:
        self.seed = seed
        self._names = [column.name for column in columns]
        self._key = str(seed).encode()
        self._values: list[dict[int, Any]] = [{} for _ in columns]
        self._repeats: list[dict[str, int]] = [{} for _ in columns]

    def number(self, column: int, value: Any, text: str) -> int:
        """The number of a new value of a column, with its text. Raises ModelError if another value has the same."""
        number = self._hash(column, text)
        values = self._values[column]
        if number in values:
            if described(values[number]) != text:
                raise self._collision(column, values[number], value)
            repeats = self._repeats[column][text] = self._repeats[column].get(text, 0) + 1
            number = self._hash(column, f"{text}#{repeats}")
            if number in values:
                raise self._collision(column, values[number], value)
        values[number] = value
        return number

    def of_text(self, column: int, value: Any) -> int:
        """The number that a value has by its text alone: in every process, and if it is never met. Raises ModelError.

        It is an error if other values may have the same text: it is no data, or of one of two types with one name.
        """
        text = described(value)
        self.check(column, value, text)
        return self._hash(column, text)

    def check(self, column: int, value: Any, text: str) -> None:
        """Raises ModelError unless a value has a number by its text alone."""
        if self._repeats[column] or not tells_apart(text):
            raise ModelError(
                f"the column {self._names[column]!r} has values that their texts do not tell apart, such as "
                f"{short(value)}: they hold objects that are no data, or types of one name; a search with "
                "symmetry or on a cluster needs data in their place"
            )

    def _hash(self, column: int, text: str) -> int:
        data = f"{self._names[column]}\0{text}".encode(errors="surrogatepass")
        return int.from_bytes(blake2b(data, key=self._key, digest_size=8).digest(), "little")

    def _collision(self, column: int, one: Any, other: Any) -> ModelError:
        return ModelError(
            f"two values of the column {self._names[column]!r} have one number for fingerprints: "
            f"{one!r} and {other!r}; use another seed than {self.seed}"
        )


VERIFIED_CALLS = 500  # the first calls of each function are made twice ...
VERIFIED_EVERY = 32  # ... and later each call with this number


class ModelCalls:
    """Calls the functions of a model.

    `calls` counts the calls of all functions, and `steps` those of step functions among them. `work` is the work of the
    calls, in transitions. `costs` has each function by its name in messages.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls, self.steps, self.work = 0, 0, 0
        self.costs: dict[str, FunctionCost] = {}

    def call(self, who: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer of a function. Raises ModelError if it fails, or gives another answer the second time."""
        began = time.perf_counter()
        answer = call(who, function, *arguments)
        cost = self._counted(who, len(arguments))
        if is_verified(cost.calls):
            _compare(who, answer, call(who, function, *arguments), arguments)
        cost.seconds += time.perf_counter() - began
        return answer

    def step(self, who: str, actor: Actor, values: tuple[Any, ...], operation: Any) -> Outcome | None:
        """The outcome of an operation; None if it is not possible. Raises ModelError as `call` does."""
        self.steps += 1
        began = time.perf_counter()
        outcome = step(self.model, actor, values, operation)
        cost = self._counted(who, 2)
        if is_verified(cost.calls):
            _compare(who, outcome, step(self.model, actor, values, operation), (values, operation))
        cost.seconds += time.perf_counter() - began
        return outcome

    def _counted(self, who: str, arguments: int) -> FunctionCost:
        """Count a call of a function, and a second one if there will be one to compare the answers."""
        self.calls += 1
        cost = self.costs.get(who)
        if cost is None:
            cost = self.costs[who] = FunctionCost()
        cost.calls += 1
        self.work += VALUE * arguments * (2 if is_verified(cost.calls) else 1)
        return cost


def is_verified(called: int) -> bool:
    """Whether the answer or the value with this number is compared with its equal."""
    return called <= VERIFIED_CALLS or called % VERIFIED_EVERY == 0


def _compare(who: str, answer: Any, again: Any, arguments: tuple[Any, ...]) -> None:
    if again != answer:
        raise AnswerError(
            f"{who} is not deterministic: of {arguments!r} it made first {answer!r}, then {again!r}. "
            "The likely cause is a clock, a random number, a counter or other state outside its arguments, "
            "or an argument that was changed in place."
        )


Array = np.ndarray[Any, Any]


class Images:
    """The images of all cells, by number. Nodes have images of zero.

    The renamings of a symmetry are a group. So the images of an image of a cell are those of the cell in another order,
    and only the first cell of an orbit is renamed. Some later ones are compared.
    """

    def __init__(self, model: Model, symmetry: Symmetry, numbers: CellNumbers) -> None:
        names, index = [column.name for column in model.columns], model.index
        self._numbers, self._images = numbers, Vector(np.uint64, 1 + len(symmetry.renamings))
        # The identity is the first one, with image 0.
        self._values = [_identity, *(renaming.value for renaming in symmetry.renamings)]
        self._columns = [
            [index[columns.get(name, name)] for name in names]
            for columns in ({}, *(renaming.columns for renaming in symmetry.renamings))
        ]
        self._orders = _products(self._columns)
        self._places: dict[int, int] = {}  # by the number of an image that is no cell: its place in `_images`, flat
        self._cells = 0

    @property
    def array(self) -> Array:
        """The images so far, for kernels: u64[cell, renaming]. The next cell invalidates it."""
        return self._images.view

    def append_zero(self) -> None:
        """Add images of zero, those of a node."""
        self._images.append_zero()

    def append(self, column: int, value: Any, text: str, number: int) -> None:
        """Add the images of a new cell, which has this text and this number. Raises ModelError."""
        self._numbers.check(column, value, text)
        place = self._places.pop(number, None)
        if place is None:
            images = self._renamed(column, value, number)
            if self._orders.size:
                first = self._images.size * len(images)
                self._places |= {image: first + order for order, image in enumerate(images) if image != number}
        else:
            cell, order = divmod(place, len(self._values))
            images = self._images.view[cell][self._orders[order]].tolist()
            self._cells += 1
            if is_verified(self._cells) and images != self._renamed(column, value, number):
                raise ModelError(f"the renamings of the model are no group: those of {short(value)} are not alike")
        self._images.append(images)

    def _renamed(self, column: int, value: Any, number: int) -> list[int]:
        images = []
        for to, columns in zip(self._values, self._columns, strict=True):
            after, target = rename(to, value), columns[column]
            is_same = target == column and after is value
            images.append(number if is_same else self._numbers.of_text(target, after))
        return images


def _identity(value: Any) -> Any:
    return value


def _products(columns: Sequence[Sequence[int]]) -> Array:
    """The order of the images of an image: of renaming [i, j], which is i and then j. Empty if columns do not tell it.

    `columns` has the column after each renaming, by the column before it.
    """
    numbers = {tuple(after): number for number, after in enumerate(columns)}
    products = [[numbers.get(tuple(then[column] for column in first)) for then in columns] for first in columns]
    is_group = len(numbers) == len(columns) and not any(None in row for row in products)
    return np.array(products if is_group else [], np.intp)


NO_ACTION = 0


class FailedCall(Enum):
    """In place of a shown value or of an answer: a function of the model failed."""

    FAILED = "failed"


class Node(NamedTuple):
    """A prefix of the reads of a group: the group, and the values read so far."""

    group: int
    values: tuple[Any, ...]


class CellValue(NamedTuple):
    """A value of a column."""

    column: int
    value: Any


class Label(NamedTuple):
    """The action of a move, and the name of its rule if fairness matters."""

    action: str
    rule: str = ""


class FirstStates(NamedTuple):
    """The first states: cells (u32), fingerprints (u64), and places among `Model.first_rows` (u16)."""

    cells: Array
    fingerprints: Array
    places: Array


class Interner:
    """The numbers of a model's values, operations, effects and actions. Only `row` and `cell` may raise ModelError."""

    def __init__(self, model: Model, seed: int, *, symmetric: bool) -> None:
        self.model = model
        self.functions = ModelCalls(model)
        self.error: AnswerError | None = None
        self.cells, self.entries = Vector(np.uint64, int(move_kernels.FIELDS)), Vector(np.uint64)
        self.classes, self.bases = Vector(np.uint32), Vector(np.uint32)
        self.places = Vector(np.uint32)  # of each cell among those of its column
        self.labels: list[Label] = [Label("")]  # by number; NO_ACTION is the first
        self.has_rules_in_labels = any(prop.kind is Kind.EVENTUALLY for prop in model.properties)
        self._layout = layout = ModelLayout(model)
        self.masks = Vector(np.uint64, layout.words)
        self.joint, self.masked = layout.joint, layout.masked
        self._labelled: dict[Label, int] = {}
        self._reads_named = [f"a read of {column.name!r}" for column in model.columns]
        self._projections = {
            read: (f"the projection of {read.column!r}", partial(project, read.column, read.projection))
            for reads in [rule.reads for rule in model.rules] + [each.reads for each in model.properties]
            for read in reads
            if read.projection is not None
        }
        self._numbers = CellNumbers(model.columns, seed)
        self._ids: list[CellValue | Node] = []
        self._equal = 0  # values that were met again, as other objects
        self._zobrist = list[int]()  # the number of each cell in fingerprints, as in `cells`
        self._seen = list[tuple[int, ...]]()  # the classes of each cell, as in `classes`
        self._cells: list[dict[Any, int]] = [{} for _ in model.columns]
        self._images: Images | None = None
        if symmetric and model.symmetry is not None:
            self._images = Images(model, model.symmetry, self._numbers)
        self._by_column = [Vector(np.uint32) for _ in model.columns]
        self._in_columns = np.zeros(0, np.uint32), np.zeros(0, np.uint64)  # `cells_by_column`, as last asked for
        self._alike: dict[tuple[int, tuple[int, ...]], int] = {}
        self._operations: dict[tuple[int, Any], int] = {}
        self._operands: list[tuple[int, Any]] = [(0, None)]  # operation ids start at 1, so that no key is 0
        self._effects: dict[tuple[int, tuple[int, ...]], int] = {}
        self._effect(NO_ACTION, ())  # effect 0 is empty

    # -- values ----------------------------------------------------------------------------------------------

    def first_states(self) -> FirstStates:
        """The first states, of renamed ones the first; new values are interned. Raises ModelError."""
        cells = np.array([self.row(row) for row in first_rows(self.model)], np.uint32)
        fingerprints = self.fingerprints(cells)
        places = np.sort(np.unique(fingerprints, return_index=True)[1])
        return FirstStates(cells[places], fingerprints[places], places.astype(np.uint16))

    def row(self, row: Row) -> list[int]:
        """The cells of a row of values, which are interned if they are new. Raises ModelError."""
        return [self.cell(column, value, "the initial state") for column, value in enumerate(row)]

    def values(self, cells: Iterable[int]) -> Row:
        """The values of a row of cells."""
        found = [self._ids[cell] for cell in cells]
        return tuple(cell.value for cell in found if isinstance(cell, CellValue))

    def column_of(self, cell: int) -> int:
        """The position of the column that a cell is a value of; -1 for a node."""
        entity = self._ids[cell]
        return entity.column if isinstance(entity, CellValue) else -1

    def cell(self, column: int, value: Any, source: str) -> int:
        """The id of a value in a column; a new one also gets classes, moves and masks."""
        cell = self._cells[column].get(value)
        if cell is not None:
            if (first := self._ids[cell][1]) is not value:
                self._compare_types(first, value, source)
            return cell
        text = described(value)
        number = self._numbers.number(column, value, text)
        cell = self._new_id(CellValue(column, value), number)
        if self._images is not None:
            self._images.append(column, value, text, number)
        self._cells[column][value] = cell
        self.places.view[cell] = self._by_column[column].size
        self._by_column[column].append(cell)
        self.bases.view[cell] = self.classes.size
        classes = [self._class(column, slot, value) for slot in range(len(self._layout.slots[column]))]
        self.classes.extend(classes)
        self._seen[cell] = tuple(classes)
        view = tuple(classes[slot] for slot in self._layout.joint_slots[column])
        alike = self._alike.setdefault((column, view), cell)
        record, numbers = self.cells.view[cell], self.cells.view[:, move_kernels.ZOBRIST]
        record[move_kernels.ALIKE], record[move_kernels.JOINT] = alike, numbers[alike]
        if not self._layout.own_rules[column]:
            record[move_kernels.LISTED] = 0
        self.masks.view[cell] = self._layout.all_joint
        for slot, word, bit in self._layout.gates[column]:
            if classes[slot] == int(hash_tables.NEVER):
                self.masks.view[cell, word] &= ~np.uint64(1 << bit)
        return cell

    @property
    def ids(self) -> int:
        """The number of cells and nodes so far."""
        return len(self._ids)

    def values_between(self, begin: int, end: int) -> list[tuple[str, Any]]:
        """The values among these cells and nodes, each with the name of its column."""
        columns = self.model.columns
        return [(columns[cell.column].name, cell.value) for cell in self._ids[begin:end] if isinstance(cell, CellValue)]

    def values_of_columns(self) -> dict[str, int]:
        """The number of values of each column, by its name."""
        return {column.name: cells.size for column, cells in zip(self.model.columns, self._by_column, strict=True)}

    def cells_by_column(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """All cells in the order of their columns and places (u32), and where each column begins there (u64)."""
        if len(self._in_columns[0]) < sum(column.size for column in self._by_column):
            parts = [column.view for column in self._by_column]
            firsts = np.cumsum([0, *(len(part) for part in parts[:-1])]).astype(np.uint64)
            self._in_columns = np.concatenate(parts), firsts
        return self._in_columns

    def _new_id(self, what: CellValue | Node, number: int = 0) -> int:
        self._ids.append(what)
        self._zobrist.append(number)
        self._seen.append(())
        self.cells.append((move_kernels.UNLISTED, number, 0, 0))
        for vector in (self.bases, self.places, self.masks):
            vector.append_zero()
        if self._images is not None and isinstance(what, Node):
            self._images.append_zero()
        return len(self._ids) - 1

    def _shown(self, read: Read, value: Any) -> tuple[Any] | None:
        if read.projection is None:
            return (value,)
        part = self.functions.call(*self._projections[read], value)
        return None if part is None else (part,)

    def _class(self, column: int, slot: int, value: Any) -> int:
        """The id of the part of a value that a read shows; ids are unique to a read.

        The value may be that of no state, so that a failure counts only where the part is used.
        """
        actor, source = -1 - column - slot * len(self.model.columns), self._reads_named[column]
        try:
            part = self._shown(self._layout.slots[column][slot], value)
            return int(hash_tables.NEVER) if part is None else self._operation(actor, part[0], source)
        except AnswerError as error:
            self.note_error(error)
            return self._operation(actor, FailedCall.FAILED, source)

    def note_error(self, error: AnswerError) -> None:
        """Keep the first error of a function."""
        self.error = self.error or error

    # -- operations ------------------------------------------------------------------------------------------

    def _operation(self, actor: int, operation: Any, source: str) -> int:
        """The id of an operation for an actor; a negative actor is a read, and the operation is the part shown."""
        number = self._operations.setdefault((actor, operation), len(self._operands))
        if number == len(self._operands):
            self._operands.append((actor, operation))
        elif (first := self._operands[number][1]) is not operation:
            self._compare_types(first, operation, source)
        return number

    def _compare_types(self, first: Any, value: Any, source: str) -> None:
        """Compare the types of some equal values; the plain engine compares those of all. Raises ModelError."""
        self._equal += 1
        if is_verified(self._equal):
            same_types(first, value, source)

    # -- effects and actions ---------------------------------------------------------------------------------

    def effect_words(self, effect: int) -> list[int]:
        """The words of an effect."""
        if not effect:
            return []
        entries = self.entries.view
        count = int(entries[effect]) & 0xFFFFFFFF
        words: list[int] = entries[effect + 1 : effect + 1 + count].tolist()
        return words

    def _effect(self, label: int, words: tuple[int, ...]) -> int:
        """The place of an effect among the entries."""
        place = self._effects.get((label, words))
        if place is None:
            place = self._effects[label, words] = self.entries.size
            self.entries.append(label << 32 | len(words))
            self.entries.extend(words)
        return place

    def _label(self, rule: str, move: Move) -> int:
        label = Label(move.action, rule if self.has_rules_in_labels else "")
        number = self._labelled.setdefault(label, len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
        return number

    def _set(self, column: int, before: int, after: int) -> tuple[int, int, int]:
        """The words of an effect that replaces a cell."""
        return (int(move_kernels.SET) | column) << 32 | after, *self._change(column, before, after)

    # -- what rules and properties read ----------------------------------------------------------------------

    def _change(self, column: int, before: int, after: int) -> tuple[int, int]:
        """The change of the fingerprint, and the bundles that may judge differently, when a cell replaces another."""
        if before == after:
            return 0, 0
        old, new, affected = self._seen[before], self._seen[after], 0
        for slot, bundles in self._layout.readers[column]:
            if old[slot] != new[slot]:
                affected |= bundles
        return self._zobrist[before] ^ self._zobrist[after], affected

    # -- for the kernels -------------------------------------------------------------------------------------

    def fingerprints(self, cells: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The fingerprints of rows of cells."""
        found: np.ndarray[Any, np.dtype[np.uint64]] = np.bitwise_xor.reduce(
            self.cells.view[cells, move_kernels.ZOBRIST], axis=1
        )
        if self._images is not None:
            columns, images = np.uint64(cells.shape[1]), self._images.array
            of_class = move_kernels.find_fingerprint_of_class
            pairs = zip(cells.astype(np.uint32), found, strict=True)
            return np.array([of_class(row, columns, image, images) for row, image in pairs], np.uint64)
        return found

    @property
    def images(self) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
        """The images of cells for the fingerprints of a symmetric search; None in any other search."""
        return None if self._images is None else self._images.array
