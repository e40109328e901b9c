"""Patterns of server states at one moment, as written in a scenario: the parameters of several properties.

A pattern names some servers and gives the allowed states, leader and file of each. It is written in words (`FOLLOWING
3`, `LEADING`, `down`), as a list of such words (any of them), or as a map with `state`, `leader` and `file`. A table of
receive buckets is a pattern with the votes of each sender.

Rules of this module: a wrong parameter raises `ParameterError`, which names the correct form; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from checker.models.ensemble.setup import File, Setup
from checker.models.ensemble.status import ElectionStatus
from checker.printable import nearest, similar
from checker.properties.election import Bucket
from spec.election.vote import ServerState
from spec.quorum import Sid, View

DOWN = "down"
STATES = tuple(state.name for state in ServerState)
FORM = f"write {', '.join(STATES)} or {DOWN}, with the leader's id after it if that matters (FOLLOWING 3)"


class ParameterError(Exception):
    """The parameter of a property is wrong; the error has the mistake and the correct form.

    `inside` leads from the parameter to the place, as keys.
    """

    def __init__(self, what: str, right: str, inside: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{what}; {right}")
        self.what, self.right, self.inside = what, right, inside


def check_parameter(name: object, takes: str, given: object) -> None:
    """Check that a property has a parameter if, and only if, it takes one. Raises ParameterError."""
    if not takes and given is not None:
        raise ParameterError(f"{name} takes no parameter", f"write {name} alone")
    if takes and given is None:
        raise ParameterError(f"{name} takes a parameter", f"give {takes}")


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
            self.state in (None, status.state)
            and self.leader in (None, status.leader)
            and self.view in (None, status.view)
        )


Pattern = Mapping[Sid, tuple[RoleCondition, ...]]
"""For each server in the pattern, the states that it may have."""


def fits(pattern: Pattern, statuses: Mapping[Sid, ElectionStatus | str]) -> bool:
    """Whether every server of the pattern matches one of its allowed states."""
    return all(any(stand.fits(statuses[sid]) for stand in stands) for sid, stands in pattern.items())


def server_of(setup: Setup, value: Any, inside: tuple[str | int, ...] = ()) -> Sid:
    """The id of a server of the scenario."""
    if isinstance(value, bool) or value not in setup.sids:
        listed = ", ".join(map(str, setup.sids))
        raise ParameterError(f"{_quoted(value)} is no server here", f"write one of {listed}", inside)
    return int(value)


def pattern_of(setup: Setup, value: Any) -> Pattern:
    """A pattern, from its value in a scenario."""
    if not isinstance(value, dict) or not value:
        raise ParameterError("a map from servers to how they stand is wanted", "write {1: LEADING}")
    return {server_of(setup, key, (key,)): tuple(_stands(setup, each, (key,))) for key, each in value.items()}


def format_pattern(value: Any) -> str:
    """A pattern as it is written, for the name of a property."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_condition(each)}" for key, each in value.items())
    return _format_condition(value)


def _format_condition(value: Any) -> str:
    if isinstance(value, dict):
        words = _format_condition(value.get("state", "running"))
        leader = f" {value['leader']}" if "leader" in value else ""
        return f"{words}{leader}" + (f" with {value['file']}" if "file" in value else "")
    return " or ".join(map(_format_condition, value)) if isinstance(value, list) else str(value)


def _stands(setup: Setup, value: Any, inside: tuple[str | int, ...]) -> Iterable[RoleCondition]:
    if isinstance(value, list):
        return [stand for place, each in enumerate(value) for stand in _stands(setup, each, (*inside, place))]
    if not isinstance(value, dict):
        return [_stand(setup, value, inside)]
    _check_keys(value, ("state", "leader", "file"), inside)
    stands = _stands(setup, value["state"], (*inside, "state")) if "state" in value else [RoleCondition(None)]
    leader = server_of(setup, value["leader"], (*inside, "leader")) if "leader" in value else None
    view = _view(setup, value["file"], (*inside, "file")) if "file" in value else None
    for each in stands:
        if each.state == DOWN and len(value) > 1:
            what = "a server that is down follows nobody and runs with no file"
            raise ParameterError(what, "write down alone", inside)
        if leader is not None and each.leader not in (None, leader):
            what = f"two leaders are named, {each.leader} and {leader}"
            raise ParameterError(what, "name one, in the state or as the leader", inside)
    return [RoleCondition(each.state, each.leader if leader is None else leader, view) for each in stands]


def _check_keys(value: Mapping[Any, Any], keys: tuple[str, ...], inside: tuple[str | int, ...]) -> None:
    """Raise ParameterError for the first key that is not allowed."""
    for key in value:
        if key not in keys:
            raise ParameterError("there is no such key", nearest(key, keys), (*inside, key))


def _stand(setup: Setup, value: Any, inside: tuple[str | int, ...]) -> RoleCondition:
    words = value.split() if isinstance(value, str) else []
    if not words or len(words) > 2 or words[0] not in (*STATES, DOWN) or (len(words) == 2 and words[0] == DOWN):
        near = similar(words[0], (*STATES, DOWN)) if words and len(words) <= 2 else None
        right = f"did you mean {near}?" if near else FORM
        raise ParameterError(f"{_quoted(value)} is not the status of a server", right, inside)
    leader = None
    if len(words) == 2:
        leader = server_of(setup, int(words[1]) if words[1].isdecimal() and len(words[1]) < 20 else words[1], inside)
    return RoleCondition(DOWN if words[0] == DOWN else ServerState[words[0]], leader)


def _view(setup: Setup, name: Any, inside: tuple[str | int, ...]) -> View:
    files: dict[str, File] = {file.name: file for file in setup.files}
    if not isinstance(name, str) or name not in files:
        raise ParameterError(f"no server here has a file {_quoted(name)}", nearest(name, files), inside)
    return files[name].view


def buckets_of(setup: Setup, value: Any) -> tuple[str, dict[Sid, Bucket]]:
    """A table of receive buckets and its name, if it has one.

    `{name: ..., 1: {state: FOLLOWING, votes: {1: [10, 1], 3: 3}}}`: a vote is [zxid, leader], or the leader
    alone, whose zxid is then the one on the leader's disk.
    """
    if not isinstance(value, dict):
        raise ParameterError("a map from servers to their buckets is wanted", _BUCKET_FORM)
    table = {server_of(setup, key, (key,)): _bucket(setup, each, key) for key, each in value.items() if key != "name"}
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
        raise ParameterError(f"{_quoted(state)} is no state", nearest(state, STATES), (sid, "state"))
    votes = {}
    for sender, vote in value["votes"].items():
        inside = (sid, "votes", sender)
        votes[server_of(setup, sender, inside)] = _vote(setup, vote, inside)
    return Bucket(ServerState[state], votes)


def _vote(setup: Setup, vote: Any, inside: tuple[str | int, ...]) -> tuple[int, Sid]:
    if isinstance(vote, list) and len(vote) == 2 and type(vote[0]) is int:
        return vote[0], server_of(setup, vote[1], (*inside, 1))
    if isinstance(vote, list):
        raise ParameterError(f"{_quoted(vote)} is no vote", _BUCKET_FORM, inside)
    leader = server_of(setup, vote, inside)
    return next(member.durable.last_zxid for member in setup.members if member.sid == leader), leader


def _quoted(value: Any) -> str:
    return repr(value)[:60]
