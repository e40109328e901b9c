"""The default presenter, for a model without its own; and the messages in flight, which all presenters derive alike.

Channels are the columns with a declaration (`checker.engine.Channel`), and those named like "1->2". Each other column
is a lane. The fields of a lane are those of the record in the column, or one field called `value`; a value with a
method `lane_fields` gives its own. A channel is shown only as messages sent, delivered, lost and removed. The messages
are computed from the content of a channel before and after a step: a tuple, a frozenset or a Bag. A model with other
channels (with acknowledgements, links) should bring its own presenter. Rules of messages in flight:

- A message that is there only after the step was sent. Equal messages are interchangeable, so they are counted.
- A message that is there only before the step is lost if the action is a fault or the loss of a network, or if the
  declaration says so. Any other message of a declared channel is received. Without a declaration it is received if the
  step has an operation for its receiver, or a rule that reads its receiver, and otherwise it is only removed.
- A delivery from a network that duplicates messages may leave the message where it is.
- All messages of a channel that was replaced are lost, even if the new channel has equal ones.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from checker.engine.contract import call, described, short
from checker.engine.model import Column, Model, ModelError, Move, Row
from checker.engine.semantics import by_rule, operations
from checker.engine.values import brief, fields_of, show, to_json
from checker.job import DiagramEvent, Json
from checker.kit.actions import Action, FaultAction, is_fault
from checker.kit.networks import ARROW, LOSE, Arrival, Bag, Remove

MARKS = {name: name for name in ("crash", "start", "cut", "heal", "decide")} | {"restart": "start", "partition": "cut"}
"""The kinds of the marks in pictures, by the names of actions."""


class DefaultPresenter:
    """The presenter of any model, by the names of its columns. See `checker.job.Presenter`."""

    def __init__(self, model: Model) -> None:
        is_channel = [column.channel is not None or ARROW in column.name for column in model.columns]
        places = [*enumerate(model.columns)]
        self._lanes = [(place, column.name) for place, column in places if not is_channel[place]]
        self._channels = [(place, column) for place, column in places if is_channel[place]]
        self._names = {name for _, name in self._lanes}
        self._model = model
        self._columns = {actor.name: {actor.name, *actor.columns} for actor in model.actors}
        self._single = {actor.name: actor.columns[0] for actor in model.actors if len(actor.columns) == 1}
        for _, column in self._channels:
            if column.channel is not None and _waiting(column.initial) is None:
                right = "a channel has a tuple, a frozenset or a Bag; or leave channel= out"
                raise ModelError(f"the channel {column.name!r} has at first {short(column.initial)}; {right}")

    def lanes(self, row: Row) -> dict[str, dict[str, Json]]:
        """One lane for each column that is not a channel."""
        return {name: _fields(row[place]) for place, name in self._lanes}

    def caption(self, move: Move) -> str:
        """The caption of the action, or its arguments; of a step of a channel alone as `deliver 1->2 (content)`."""
        if isinstance(move.action, Action) and move.action.traits.caption is not None:
            names = map(_named, move.arguments)
            return str(call(f"the caption of the action {str(move.action)!r}", move.action.worded, *names))
        arguments = [to_json(argument) for argument in move.arguments]
        if len(arguments) >= 2 and all(show(argument) in self._names for argument in arguments[:2]):
            sender, receiver = map(show, arguments[:2])
            if self._goes(sender, receiver, move) and not self._goes(receiver, sender, move):
                arguments = [f"{sender}{ARROW}{receiver}", *arguments[2:]]
        return " ".join([move.action, *(brief(argument) for argument in arguments)])

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """The messages that left the channels, the action if pictures mark it, the messages that entered them."""
        ends: list[DiagramEvent] = []
        entered: list[DiagramEvent] = []
        for place, column in self._channels:
            for event in self._through(column, before, after, place, move):
                (entered if event.kind == "send" else ends).append(event)
        return (*ends, *self._marks(move), *entered)

    def _goes(self, sender: str, receiver: str, move: Move) -> bool:
        """Whether a move concerns a channel from a sender to a receiver, or is an arrival from it."""
        channels = {column.name for _, column in self._channels if _pair_of(column) == (sender, receiver)}
        channels.add(f"{sender}{ARROW}{receiver}")
        return any(send.actor in channels or self._single.get(send.actor) in channels for send in move.sends) or any(
            isinstance(operation, Arrival) and operation.source == sender for operation in _operations(move, receiver)
        )

    def _through(self, column: Column, before: Row, after: Row, place: int, move: Move) -> Iterator[DiagramEvent]:
        old, new = _waiting(before[place]), _waiting(after[place])
        if old is None or new is None:
            return
        # A message may leave while an equal one enters, and the content then is as before.
        arrived, losses, sendings = changes(old, new, _taken(old, _operations(move, column.name)))
        if not arrived and (pair := _pair_of(column)) is not None:  # a message that arrives and stays
            yield from (
                _message("deliver", pair, operation.message)
                for operation in _operations(move, pair[1])
                if isinstance(operation, Arrival) and operation.source == pair[0]
            )
        for message in (*arrived, *losses):
            pair = self._ends(column, message)
            yield _message(self._fate(column, pair[1], before, move, after), pair, message)
        yield from (_message("send", self._ends(column, message), message) for message in sendings)

    def _ends(self, column: Column, message: Any) -> tuple[str, str]:
        """The sender and the receiver of a message. Raises ModelError for a name that no column has."""
        if (pair := _pair_of(column)) is not None:
            return pair
        assert column.channel is not None
        names = [
            call(f"the {end} of the channel {column.name!r}", name, message) if callable(name) else name
            for end, name in (("sender", column.channel.sender), ("receiver", column.channel.receiver))
        ]
        for name in names:
            if name not in self._names:
                right = f"the columns that are no channel are {', '.join(sorted(self._names))}"
                raise ModelError(f"the channel {column.name!r} has {short(message)} of the process {name!r}; {right}")
        return names[0], names[1]

    def _fate(self, column: Column, receiver: str, before: Row, move: Move, after: Row) -> str:
        """The kind of a removal from a channel to a receiver. See the rules of this module."""
        declared = column.channel
        if move.action == LOSE or is_fault(move.action) or (declared is not None and move.action in declared.lost_by):
            return "lost"
        if declared is not None:
            return "deliver"
        carried_out = operations(self._model, before, move)
        if any(receiver in self._columns.get(send.actor, ()) for send in carried_out):
            return "deliver"
        reads = (
            self._model.rules[self._model.rule_index[rule]].reads
            for rule, candidate, row in by_rule(self._model, before)
            if row == after and (candidate.action, candidate.sends) == (move.action, move.sends)
        )
        return "deliver" if any(read.column == receiver for group in reads for read in group) else "removed"

    def _marks(self, move: Move) -> Iterator[DiagramEvent]:
        kind = MARKS.get(move.action)
        if kind is None:
            return
        lanes = [name for name in map(str, move.arguments) if name in self._names]
        lanes = lanes or [send.actor for send in move.sends if send.actor in self._names]
        if lanes:
            yield DiagramEvent(kind, lanes[0], kind, peer=next(iter(lanes[1:]), None))


class BarePresenter:
    """The presenter that calls no function of an author: each value is its `repr`, and no message is drawn."""

    def __init__(self, model: Model) -> None:
        self._names = [column.name for column in model.columns]

    def lanes(self, row: Row) -> dict[str, dict[str, Json]]:
        """One lane for each column."""
        return {name: {"value": short(value)} for name, value in zip(self._names, row, strict=True)}

    def caption(self, move: Move) -> str:
        """The action with its arguments."""
        return " ".join([move.action, *map(short, move.arguments)])

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:  # noqa: ARG002
        """Nothing."""
        return ()


def _named(argument: Any) -> str:
    return ", ".join(map(show, map(to_json, argument))) if isinstance(argument, tuple) else show(to_json(argument))


def _fields(value: Any) -> dict[str, Json]:
    method = getattr(value, "lane_fields", None)
    if method is not None and not isinstance(value, type):
        return dict(call(f"lane_fields of a {type(value).__name__}", method))
    fields = fields_of(value)
    return {"value": to_json(value)} if fields is None else fields


def _operations(move: Move, actor: str) -> list[Any]:
    return [send.operation for send in move.sends if send.actor == actor]


def _pair_of(column: Column) -> tuple[str, str] | None:
    """The sender and the receiver of all messages of a channel; None if each message has its own."""
    if column.channel is None:
        sender, _, receiver = column.name.partition(ARROW)
        return sender, receiver
    ends = column.channel.sender, column.channel.receiver
    return None if callable(ends[0]) or callable(ends[1]) else (ends[0], ends[1])


def _message(kind: str, ends: tuple[str, str], message: Any) -> DiagramEvent:
    lane, peer = reversed(ends) if kind == "deliver" else ends
    return DiagramEvent(kind, lane, show(to_json(message)), peer=peer)


def _waiting(content: Any) -> tuple[Any, ...] | None:
    """The messages of a channel; None if its content is of an unknown type."""
    if isinstance(content, frozenset):
        return tuple(sorted(content, key=lambda message: (described(message), hash(message))))
    if type(content) is tuple:
        return content
    if isinstance(content, FaultAction):  # the link is cut
        return ()
    return tuple(content) if isinstance(content, Bag) else None


def _taken(waiting: tuple[Any, ...], operations: list[Any]) -> int | None:
    for operation in operations:
        if isinstance(operation, Remove) and operation.message in waiting:
            return waiting.index(operation.message)
    return None


M = TypeVar("M", bound=Hashable)


class Changes(NamedTuple, Generic[M]):
    """The messages that arrived, were lost, and were sent in a step, each group with the oldest first."""

    arrived: tuple[M, ...]
    lost: tuple[M, ...]
    sent: tuple[M, ...]


def changes(
    before: Sequence[M], after: Sequence[M], arrived: int | None = None, *, replaced: bool = False
) -> Changes[M]:
    """The changes of a channel; `arrived` is the place of the message that the step delivered, if any."""
    waiting = list(before)
    copies = () if arrived is None else (waiting.pop(arrived),)
    if replaced:
        return Changes(copies, tuple(waiting), tuple(after))
    return Changes(copies, without(waiting, after), without(after, waiting))


def without(messages: Sequence[M], others: Sequence[M]) -> tuple[M, ...]:
    """The messages that remain when each of the others takes an equal one away, the oldest first."""
    away = Counter(others)
    rest = []
    for message in messages:
        if away[message]:
            away[message] -= 1
        else:
            rest.append(message)
    return tuple(rest)


def operation_on(actor: str, move: Move) -> Any:
    """The first operation that a move sends to an actor, or None."""
    return next((send.operation for send in move.sends if send.actor == actor), None)
