"""A linearizability check: is there an order of the operations on a znode that explains every reply?

The order must respect real time. The algorithm is that of Wing and Gong, with Lowe's memory of visited configurations.
It places the operations one after another. Each operation it places was invoked before the earliest completion among
those not placed yet. It never enters the same configuration (the placed operations and the state of the register)
twice.

What an operation does, and the reply that it gives, is a *sequential specification*.
By default it is that of a znode.

Rules of this module:

- Zxids are ignored, so that the check applies to any register. The order of zxids is a separate check.
- An answered operation fits a state only if the specification gives that reply in that state.
- An operation without a reply may be placed at any time after its invocation, or never. It fits any state in which it
  would have an effect. Where it would have none, it is treated as never carried out.
- An error that is unrelated to the znode (a lost session, a refused authentication) is not an observation: it fits any
  state and changes nothing.
- An observation that agrees with the state is placed immediately. It changes nothing, so no other choice is better.
- Unanswered writes with values that no read returned are interchangeable, so only the first of each kind is tried.
- The number of configurations is bounded. A search that reaches the bound returns `NoAnswer`, never "linearizable".
- A counterexample is the first in time: the operation whose completion left no order, while an order existed for every
  earlier one.

Source: Wing and Gong, "Testing and Verifying Concurrent Objects" (1993); Lowe, "Testing for linearizability" (2017);
`PrepRequestProcessor.pRequest2Txn` (create, setData, deleteNode); `FinalRequestProcessor` (getData).

`Znode` is that of one znode of ZooKeeper: a value
with its version, or no znode. A create begins at version 0, a set adds one, a delete removes it. `PlainRegister` and
`CasRegister` have a value and no version.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from checker.histories.record import ANY_VERSION, Operation, RegisterOperation, Violation

Register: TypeAlias = tuple[str, int] | None
"""The value and the version of the znode; None if it does not exist."""


class SequentialSpecification(Protocol):
    """An object without concurrency. Its states are hashable."""

    @property
    def initial(self) -> Any:
        """The state before the first operation."""

    def agrees(self, operation: Operation, state: Any) -> bool:
        """Whether the reply to a read, or a refusal, fits this state."""

    def written(self, operation: Operation, state: Any) -> tuple[Any] | None:
        """The state after a write, in a tuple; None if the write has no effect, or another reply, in this state."""


class Znode:
    """The specification of one znode. An answer with a Stat fits only if its version is right, too."""

    initial: Register = None

    def agrees(self, operation: Operation, state: Register) -> bool:
        """Whether the reply to a read, or a refusal, fits this state."""
        if operation.outcome == "failed":
            return _refused_so(operation, state)
        return state is not None and state[0] == operation.value and _fits(operation, state[1])

    def written(self, operation: Operation, state: Register) -> tuple[Register] | None:
        """The state after a write, in a tuple; None if the write has no effect, or another reply, in this state."""
        if operation.kind == "create":
            if state is not None or operation.value is None:
                return None
            return _answered_so(operation, (operation.value, 0))
        if state is None or operation.condition not in {ANY_VERSION, state[1]}:
            return None
        if operation.kind == "delete":
            return (None,)
        return None if operation.value is None else _answered_so(operation, (operation.value, state[1] + 1))


class PlainRegister:
    """The specification of a register that always exists: a read returns the value of the last write."""

    def __init__(self, initial: str) -> None:
        self.initial = initial

    def agrees(self, operation: Operation, state: str) -> bool:
        """Whether a read may return its value in this state."""
        return operation.value == state

    def written(self, operation: Operation, state: str) -> tuple[str] | None:  # noqa: ARG002 (a write fits any state)
        """The state after a write, in a tuple."""
        return None if operation.value is None else (operation.value,)


class CasRegister(PlainRegister):
    """A register with compare-and-set, which has an effect only if the value is the expected one."""

    def written(self, operation: Operation, state: str) -> tuple[str] | None:
        """The state after a write, in a tuple; None if the value is not the expected one."""
        expected = operation.expected if isinstance(operation, RegisterOperation) else None
        return super().written(operation, state) if expected in {None, state} else None


def _refused_so(operation: Operation, state: Register) -> bool:
    if not operation.refused:
        return True
    if operation.error == "NoNode":
        return state is None
    if operation.error == "NodeExists":
        return state is not None and operation.kind == "create"
    return state is not None and operation.condition not in {ANY_VERSION, state[1]}


def _answered_so(operation: Operation, left: tuple[str, int]) -> tuple[Register] | None:
    return (left,) if operation.outcome == "unknown" or _fits(operation, left[1]) else None


def _fits(operation: Operation, version: int) -> bool:
    return not operation.has_stat or operation.version == version


CLAUSE = "writes and synced reads are linearizable"
BOUND = 500_000
"""The number of configurations that a search visits before it gives up."""
UNREAD = "(a value that nobody read)"
SHOWN = 8
"""The most witnesses shown of each kind: the last ones placed in the order, and those that have no place."""


class Linearization(msgspec.Struct, frozen=True):
    """An order of the operations, which therefore exists."""

    order: tuple[Operation, ...]


class NoAnswer(msgspec.Struct, frozen=True):
    """The search reached its bound."""

    configurations: int


class NoOrder(msgspec.Struct, frozen=True):
    """The result that no order exists: `placed` is a longest partial order, `state` the object after it."""

    placed: tuple[Operation, ...]
    state: Any


SearchResult: TypeAlias = Linearization | NoAnswer | NoOrder


class _Configuration(msgspec.Struct, frozen=True):
    """The placed operations, and the state of the object after them.

    The placed operations are the answered ones below `base`, the answered ones whose bit is set in `ahead` (bit 0 is
    `base`), and the unanswered ones whose bit is set in `unanswered`.
    """

    base: int
    ahead: int
    unanswered: int
    state: Any

    @property
    def answered(self) -> int:
        return self.base + self.ahead.bit_count()


class _OrderSearch:
    """The operations on one object, ready to be placed. Reads without a reply constrain nothing, and are left out."""

    def __init__(self, operations: Sequence[Operation], object_: SequentialSpecification) -> None:
        self.object = object_
        by_invocation = sorted(operations, key=lambda operation: operation.invoked)
        self.known = [operation for operation in by_invocation if operation.outcome != "unknown"]
        self.unknown = [op for op in by_invocation if op.outcome == "unknown" and op.is_write]
        values = {op.value for op in self.known if not op.is_write}
        values |= {op.expected for op in by_invocation if isinstance(op, RegisterOperation)}
        unread = UNREAD
        while unread in values:
            unread += "*"
        self.unknown = [op if op.value in values else _unread(op, unread) for op in self.unknown]

    def candidates(self, at: _Configuration) -> tuple[list[int], list[int]]:
        """The answered and the unanswered operations that may be next in the order."""
        places: list[int] = []
        earliest = math.inf
        for index in range(at.base, len(self.known)):
            if self.known[index].invoked > earliest:
                break
            if not at.ahead >> (index - at.base) & 1:
                places.append(index)
                earliest = min(earliest, self.known[index].end)
        return places, self._distinct(at.unanswered, earliest)

    def _distinct(self, placed: int, earliest: float) -> list[int]:
        chosen: list[int] = []
        kinds: set[object] = set()
        for index, operation in enumerate(self.unknown):
            if operation.invoked > earliest:
                break
            expected = operation.expected if isinstance(operation, RegisterOperation) else operation.condition
            alike = operation.kind, operation.value, expected
            if not placed >> index & 1 and alike not in kinds:
                kinds.add(alike)
                chosen.append(index)
        return chosen

    def successors(self, at: _Configuration) -> Iterator[tuple[Operation, _Configuration]]:
        """The ways to place one further operation; the answered operations are first."""
        places, unknown = self.candidates(at)
        for index in places:
            operation = self.known[index]
            if _observes(operation) and self.object.agrees(operation, at.state):
                yield operation, self._with(at, index, at.state)
                return
        for index in places:
            operation = self.known[index]
            state = None if _observes(operation) else self.object.written(operation, at.state)
            if state is not None:
                yield operation, self._with(at, index, state[0])
        for index in unknown:
            state = self.object.written(self.unknown[index], at.state)
            if state is not None:
                placed = at.unanswered | 1 << index
                yield self.unknown[index], _Configuration(at.base, at.ahead, placed, state[0])

    @staticmethod
    def _with(at: _Configuration, index: int, state: Any) -> _Configuration:
        base, ahead = at.base, at.ahead | 1 << (index - at.base)
        while ahead & 1:
            base, ahead = base + 1, ahead >> 1
        return _Configuration(base, ahead, at.unanswered, state)


class _Visited:
    """The configurations that were entered, and those that they subsume.

    A configuration with more unanswered writes placed than another, and otherwise equal to it, can reach nothing that
    the other one cannot. So it counts as entered too.
    """

    def __init__(self) -> None:
        self.count = 0
        self._placed: dict[tuple[int, int, Any], list[int]] = {}

    def adds(self, at: _Configuration) -> bool:
        """Enter a configuration; return False if an entered one subsumes it."""
        before = self._placed.setdefault((at.base, at.ahead, at.state), [])
        if any(placed & at.unanswered == placed for placed in before):
            return False
        before.append(at.unanswered)
        self.count += 1
        return True


def _unread(operation: Operation, value: str) -> Operation:
    """An unanswered write with a value that no read returned; all such writes are interchangeable."""
    return operation if operation.kind == "delete" else msgspec.structs.replace(operation, value=value)


def search(
    operations: Sequence[Operation], bound: int = BOUND, object_: SequentialSpecification = Znode()
) -> SearchResult:
    """Search for an order of the operations on one object; by default a znode, which does not exist initially."""
    task = _OrderSearch(operations, object_)
    start = _Configuration(0, 0, 0, object_.initial)
    visited = _Visited()
    path = [start]
    following = [task.successors(start)]
    placed: list[Operation] = []
    longest, most = NoOrder((), object_.initial), -1
    while path and path[-1].base < len(task.known):
        step = next(following[-1], None)
        if step is None:  # a dead end; the furthest one is kept
            if path[-1].answered > most:
                longest, most = NoOrder(tuple(placed), path[-1].state), path[-1].answered
            path.pop()
            following.pop()
            del placed[-1:]
        elif visited.adds(step[1]):
            if visited.count > bound:
                return NoAnswer(visited.count)
            placed.append(step[0])
            path.append(step[1])
            following.append(task.successors(step[1]))
    return Linearization(tuple(placed)) if path else longest


def check(
    operations: Sequence[Operation], bound: int = BOUND, object_: SequentialSpecification = Znode()
) -> Violation | NoAnswer | None:
    """Find the first operation on an object that no order explains, if there is one."""
    answer = search(operations, bound, object_)
    if not isinstance(answer, NoOrder):
        return answer if isinstance(answer, NoAnswer) else None
    ends = sorted(operation.end for operation in operations if operation.outcome != "unknown")
    low, high = 0, len(ends) - 1  # ends[high] is known to have no order
    while low < high:
        middle = (low + high) // 2
        shorter = search(until(operations, ends[middle]), bound, object_)
        if isinstance(shorter, NoOrder):
            high, answer = middle, shorter
        else:
            low = middle + 1
    return _violation(until(operations, ends[high]), ends[high], answer)


def until(operations: Sequence[Operation], time: float) -> list[Operation]:
    """The history at a point in time: later completions have no reply yet, and later invocations are missing."""
    return [
        operation if operation.end <= time else _pending(operation)
        for operation in operations
        if operation.invoked <= time
    ]


def _pending(operation: Operation) -> Operation:
    value = operation.value if operation.is_write else None
    return msgspec.structs.replace(
        operation, outcome="unknown", completed=None, value=value, error="", zxid=0, mzxid=0, version=0
    )


def _violation(operations: Sequence[Operation], time: float, found: NoOrder) -> Violation:
    guilty = next(op for op in operations if op.end == time and op.outcome != "unknown")
    placed = set(map(id, found.placed))
    near = [op for op in operations if op.outcome != "unknown" and op is not guilty and id(op) not in placed]
    before = list(found.placed[-SHOWN:])
    detail = (
        f"{guilty.key}: no order of the operations explains this answer; after the longest order that explains the"
        f" others there is {_shown(found.state)}. Guilty: {guilty}"
    )
    return Violation(CLAUSE, detail, tuple(dict.fromkeys([*before, *near[:SHOWN], guilty])))


def _observes(operation: Operation) -> bool:
    """Whether an operation, with the reply that it got, changes nothing: a read or a refusal."""
    return operation.outcome == "failed" or not operation.is_write


def _shown(state: Register | str) -> str:
    if isinstance(state, str):
        return state
    return "no znode" if state is None else f"{state[0]!r} at version {state[1]}"
