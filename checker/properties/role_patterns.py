"""Properties of the states of servers, for scenarios that describe a situation.

`Stands` and `NeverStands` take a pattern (`checker.properties.patterns`). `Serves` and `ServesNoMore` concern states
without a next step, where every run ends after the faults.

Each property returns a value: the clause that decided and its witnesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Property, Read
from checker.engine.model import Trivial
from checker.models.ensemble.names import LINKS, Link, server_name
from checker.models.ensemble.setup import Setup
from checker.models.ensemble.status import LEADING, ElectionStatus, election_status, is_established
from checker.properties.patterns import Pattern, fits
from spec.quorum import Sid
from spec.server import Server

Statuses = Mapping[Sid, ElectionStatus | str]


def stands(pattern: Pattern, words: str) -> Property:
    """A witness: at one moment the servers match the pattern."""

    def check(*seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(pattern, seen, strict=True))
        return Finding("the servers stand so", _witnesses(statuses)) if fits(pattern, statuses) else None

    meaning = f"at one moment the servers stand so: {words}"
    return Property(f"Stands({words})", _reads(pattern), check, Kind.SOMETIMES, meaning)


def never_stands(pattern: Pattern, words: str) -> Property:
    """An invariant: at no moment do all servers match the pattern."""

    def check(*seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(pattern, seen, strict=True))
        return Finding("the servers stand so", _witnesses(statuses)) if fits(pattern, statuses) else None

    meaning = f"at no moment do the servers stand so: {words}"
    return Property(f"NeverStands({words})", _reads(pattern), check, meaning=meaning)


def serves(setup: Setup) -> Property:
    """R2, R3: in a state without a next step within the bounds, a server leads with a quorum within reach."""

    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(setup.sids, seen, strict=True))
        if serving(statuses, cut):
            return None
        return Finding("nothing more can happen, and nobody leads with a quorum within reach", _witnesses(statuses))

    meaning = "where nothing more can happen within the bounds, a server leads with a quorum of its view within reach"
    return Property("Serves", _with_links(setup), check, Kind.FINAL, meaning)


def serves_no_more(setup: Setup) -> Property:
    """R2, R3, R4: in a state without a next step within the bounds, no server leads with a quorum within reach."""

    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(setup.sids, seen, strict=True))
        leaders = serving(statuses, cut)
        if not leaders:
            return None
        return Finding("a server leads with a quorum within reach", (("leaders", leaders), *_witnesses(statuses)))

    meaning = "where nothing more can happen within the bounds, no server leads with a quorum of its view within reach"
    return Property("ServesNoMore", _with_links(setup), check, Kind.FINAL, meaning)


def one_vote_per_sender(setup: Setup) -> Property:
    """R8: recvset and outofelection contain one vote of each sender."""

    def senders(server: Server) -> tuple[tuple[Sid, ...], tuple[Sid, ...]] | str:
        election = server.election
        if election is None or not (election.recvset or election.outofelection):
            return "nothing"
        return tuple(sid for sid, _ in election.recvset), tuple(sid for sid, _ in election.outofelection)

    def check(*seen: Any) -> Finding | Trivial | None:
        if all(each == "nothing" for each in seen):
            return TRIVIAL
        twice = [
            (f"server.{sid} holds votes of", list(bucket))
            for sid, each in zip(setup.sids, seen, strict=True)
            for bucket in (each if each != "nothing" else ())
            if len(set(bucket)) != len(bucket)
        ]
        return Finding("a receive bucket holds two votes of one sender", tuple(twice)) if twice else None

    reads = tuple(Read(server_name(sid), senders) for sid in setup.sids)
    return Property("OneVotePerSender", reads, check, meaning="a receive bucket holds one vote of each sender")


def serving(statuses: Statuses, cut: frozenset[Link]) -> list[Sid]:
    """The servers that lead while a quorum of their view follows them, counting only followers within reach."""
    found = []
    for sid, each in statuses.items():
        if isinstance(each, ElectionStatus) and each.state is LEADING:
            within = {o: e for o, e in statuses.items() if (min(o, sid), max(o, sid)) not in cut}
            if is_established(within, sid):
                found.append(sid)
    return found


def _reads(sids: Iterable[Sid]) -> tuple[Read, ...]:
    return tuple(Read(server_name(sid), election_status) for sid in sids)


def _with_links(setup: Setup) -> tuple[Read, ...]:
    return (Read(LINKS), *_reads(setup.sids))


def _witnesses(statuses: Statuses) -> tuple[tuple[str, Any], ...]:
    return tuple((f"server.{sid}", _format_status(each)) for sid, each in statuses.items())


def _format_status(each: ElectionStatus | str) -> str:
    if isinstance(each, str):
        return each
    return each.state.name if each.leader is None else f"{each.state.name} {each.leader}"
