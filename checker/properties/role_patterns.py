"""Properties that describe the roles of servers at one moment, and the parameters in which a scenario writes them.

A pattern names some servers and gives the allowed states, leader and file of each. It is written in words (`FOLLOWING
3`, `LEADING`, `down`), as a list of such words (any of them), or as a map with `state`, `leader` and `file`. A table of
receive buckets is a pattern with the votes of each sender.

Rules of this module: a wrong parameter raises `ParameterError`, which names the correct form; nothing is guessed.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from checker.engine import Finding, Kind, Read
from checker.models.ensemble.setup import VOTES, File, Setup, server_name
from checker.models.ensemble.status import ElectionStatus, election_status
from checker.printable import nearest, similar
from checker.properties.projections import ENSEMBLE_PROPERTIES, Statuses, quoted, server_of
from checker.properties.registry import Condition, Parameter, ParameterError
from spec.election.vote import ServerState
from spec.quorum import Sid, View
from spec.text import LONG, integer

DOWN = "down"
STANDALONE = "STANDALONE"
STATES = (*(state.name for state in ServerState), STANDALONE)
FORM = f"write {', '.join(STATES)} or {DOWN}, with the leader's id after it if that matters (FOLLOWING 3)"


class RoleCondition(NamedTuple):
    """One allowed state of a server, with an optional leader and file; a state of None is any running state."""

    state: ServerState | str | None
    leader: Sid | None = None
    view: View | None = None

    def fits(self, status: ElectionStatus | str) -> bool:
        """Whether a server matches."""
        if isinstance(status, str):
            return self.state == DOWN
        return (
            self.state in (None, STANDALONE if status.is_standalone else status.state)
            and self.leader in (None, status.leader)
            and self.view in (None, status.view)
        )


Pattern = Mapping[Sid, tuple[RoleCondition, ...]]
"""For each server in the pattern, the states that it may have."""


def fits(pattern: Pattern, statuses: Mapping[Sid, ElectionStatus | str]) -> bool:
    """Whether every server of the pattern matches one of its allowed states."""
    return all(any(stand.fits(statuses[sid]) for stand in stands) for sid, stands in pattern.items())


def pattern_of(setup: Setup, value: Any) -> Pattern:
    """A pattern, from its value in a scenario."""
    if not isinstance(value, dict) or not value:
        raise ParameterError("a map from servers to their states is expected", "write {1: LEADING}")
    return {server_of(setup, key, (key,)): tuple(_conditions(setup, part, (key,))) for key, part in value.items()}


def format_pattern(value: Any) -> str:
    """A pattern as it is written, for the name of a property."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_condition(part)}" for key, part in value.items())
    return _format_condition(value)


def _format_condition(value: Any) -> str:
    if isinstance(value, dict):
        words = _format_condition(value.get("state", "running"))
        leader = f" {value['leader']}" if "leader" in value else ""
        return f"{words}{leader}" + (f" with {value['file']}" if "file" in value else "")
    return " or ".join(map(_format_condition, value)) if isinstance(value, list) else str(value)


def _conditions(setup: Setup, value: Any, inside: tuple[str | int, ...]) -> Iterable[RoleCondition]:
    if isinstance(value, list):
        return [stand for place, part in enumerate(value) for stand in _conditions(setup, part, (*inside, place))]
    if not isinstance(value, dict):
        return [_condition(setup, value, inside)]
    _check_keys(value, ("state", "leader", "file"), inside)
    stands = _conditions(setup, value["state"], (*inside, "state")) if "state" in value else [RoleCondition(None)]
    leader = server_of(setup, value["leader"], (*inside, "leader")) if "leader" in value else None
    view = _view(setup, value["file"], (*inside, "file")) if "file" in value else None
    for part in stands:
        if part.state == DOWN and len(value) > 1:
            problem = "a server that is down follows nobody and runs with no file"
            raise ParameterError(problem, "write down alone", inside)
        if leader is not None and part.leader not in (None, leader):
            problem = f"two leaders are named, {part.leader} and {leader}"
            raise ParameterError(problem, "name one, in the state or as the leader", inside)
    return [RoleCondition(part.state, part.leader if leader is None else leader, view) for part in stands]


def _check_keys(value: Mapping[Any, Any], keys: tuple[str, ...], inside: tuple[str | int, ...]) -> None:
    """Raise ParameterError for the first key that is not allowed."""
    for key in value:
        if key not in keys:
            raise ParameterError("unknown key", nearest(key, keys), (*inside, key))


def _condition(setup: Setup, value: Any, inside: tuple[str | int, ...]) -> RoleCondition:
    words = value.split() if isinstance(value, str) else []
    if not words or len(words) > 2 or words[0] not in (*STATES, DOWN) or (len(words) == 2 and words[0] == DOWN):
        near = similar(words[0], (*STATES, DOWN)) if words and len(words) <= 2 else None
        right = f"did you mean {near}?" if near else FORM
        raise ParameterError(f"{quoted(value)} is not the status of a server", right, inside)
    leader = None
    if len(words) == 2:
        number = integer(words[1], 0, LONG[1])
        leader = server_of(setup, words[1] if number is None else number, inside)
    return RoleCondition(words[0] if words[0] in (DOWN, STANDALONE) else ServerState[words[0]], leader)


def _view(setup: Setup, name: Any, inside: tuple[str | int, ...]) -> View:
    files: dict[str, File] = {file.name: file for file in setup.files}
    if not isinstance(name, str) or name not in files:
        raise ParameterError(f"no server here has a file {quoted(name)}", nearest(name, files), inside)
    return files[name].view


def _read_pattern(setup: Setup, value: object) -> tuple[Pattern, str]:
    return pattern_of(setup, value), format_pattern(value)


PATTERN: Parameter[Setup] = Parameter(
    "servers and their states", "{1: FOLLOWING 3, 2: down, 3: LEADING}", _read_pattern
)


def _matches(pattern: Pattern) -> Condition:
    def check(*seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(pattern, seen, strict=True))
        return Finding("the servers stand so", witnesses(statuses)) if fits(pattern, statuses) else None

    return Condition(tuple(Read(server_name(sid), election_status) for sid in pattern), check)


@ENSEMBLE_PROPERTIES.declare(
    "NeverStands",
    Kind.ALWAYS,
    meaning="In no state do all servers of the pattern match it",
    notes="It states the subject of a scenario. See [patterns](#patterns).",
    parameter=PATTERN,
)
def _never_stands(_: Setup, pattern: Pattern) -> Condition:
    return _matches(pattern)


@ENSEMBLE_PROPERTIES.declare(
    "Stands",
    Kind.SOMETIMES,
    meaning="In some state all servers of the pattern match it",
    notes="It states the subject of a scenario. See [patterns](#patterns).",
    parameter=PATTERN,
)
def _stands(_: Setup, pattern: Pattern) -> Condition:
    return _matches(pattern)


def witnesses(statuses: Statuses) -> tuple[tuple[str, Any], ...]:
    """The states of servers as the values of a finding."""
    return tuple((f"server.{sid}", _format_status(status)) for sid, status in statuses.items())


def _format_status(each: ElectionStatus | str) -> str:
    if isinstance(each, str):
        return each
    return each.state.name if each.leader is None else f"{each.state.name} {each.leader}"


# Receive buckets.


class Bucket(NamedTuple):
    """The entry of a table for one server: its state, and the last vote of each sender as (zxid, leader)."""

    state: ServerState
    votes: Mapping[Sid, tuple[int, Sid]]


def buckets_of(setup: Setup, value: Any) -> tuple[str, dict[Sid, Bucket]]:
    """A table of receive buckets and its name, if it has one.

    `{name: ..., 1: {state: FOLLOWING, votes: {1: [10, 1], 3: 3}}}`: a vote is [zxid, leader], or the leader
    alone, whose zxid is then the one on the leader's disk.
    """
    if not isinstance(value, dict):
        raise ParameterError("a map from servers to their buckets is wanted", _BUCKET_FORM)
    table = {server_of(setup, key, (key,)): _bucket(setup, part, key) for key, part in value.items() if key != "name"}
    if not table:
        raise ParameterError("the table names no server", _BUCKET_FORM)
    return str(value.get("name", "")), table


_BUCKET_FORM = "write {1: {state: LOOKING, votes: {1: 1, 3: [8, 3]}}}: to each sender its leader, or [zxid, leader]"


def _bucket(setup: Setup, value: Any, sid: Sid) -> Bucket:
    if isinstance(value, dict):
        _check_keys(value, ("state", "votes"), (sid,))
    if not isinstance(value, dict) or len(value) != 2 or not isinstance(value["votes"], dict):
        raise ParameterError("a bucket has a state and votes, and nothing else", _BUCKET_FORM, (sid,))
    state = value["state"]
    if state not in STATES:
        raise ParameterError(f"{quoted(state)} is not a state", nearest(state, STATES), (sid, "state"))
    votes = {}
    for sender, vote in value["votes"].items():
        inside = (sid, "votes", sender)
        votes[server_of(setup, sender, inside)] = _vote(setup, vote, inside)
    return Bucket(ServerState[state], votes)


def _vote(setup: Setup, vote: Any, inside: tuple[str | int, ...]) -> tuple[int, Sid]:
    if isinstance(vote, list) and len(vote) == 2 and type(vote[0]) is int:
        return vote[0], server_of(setup, vote[1], (*inside, 1))
    if isinstance(vote, list):
        raise ParameterError(f"{quoted(vote)} is not a vote", _BUCKET_FORM, inside)
    leader = server_of(setup, vote, inside)
    return next(member.durable.last_zxid for member in setup.members if member.sid == leader), leader


def _read_table(setup: Setup, value: object) -> tuple[dict[Sid, Bucket], str]:
    name, table = buckets_of(setup, value)
    return table, name or format_pattern({sid: bucket.state.name for sid, bucket in table.items()})


TABLE: Parameter[Setup] = Parameter(
    "servers with their states and votes", "{1: {state: LOOKING, votes: {1: 1, 3: [8, 3]}}}", _read_table
)


@ENSEMBLE_PROPERTIES.declare(
    "Buckets",
    Kind.SOMETIMES,
    meaning="In some state the servers of the table have exactly its states and receive buckets",
    requirements=("R7", "R10"),
    notes="A receive bucket is the last vote that a server has received from each sender since it began its election; "
    "its own vote is in the bucket. The property needs the fine grain, and a column that remembers votes, which "
    "multiplies the states. See [tables](#tables-of-receive-buckets).",
    parameter=TABLE,
)
def _buckets(_: Setup, table: Mapping[Sid, Bucket]) -> Condition:
    sids = tuple(sorted(table))

    def check(votes: Iterable[Any], *seen: ElectionStatus | str) -> Finding | None:
        received: dict[Sid, dict[Sid, tuple[int, Sid]]] = {sid: {} for sid in sids}
        for (server, sender), vote in votes:
            if server in received:
                received[server][sender] = (vote.zxid, vote.leader)
        for sid, status in zip(sids, seen, strict=True):
            if not isinstance(status, ElectionStatus) or status.state is not table[sid].state:
                return None
            if received[sid] != table[sid].votes:
                return None
        return Finding("the receive buckets are those of the table")

    return Condition((Read(VOTES), *(Read(server_name(sid), election_status) for sid in sids)), check)
