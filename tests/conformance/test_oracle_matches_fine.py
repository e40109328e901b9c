"""The election oracle has exactly the outcomes of the election by messages, on three servers, exhaustively.

An outcome is a leader that is followed by a quorum of its view, and the set of its followers. Both grains start the
same servers at any time, with the same files, data and faults. The sets of reachable outcomes must be equal. The fine
grain has rounds, and its limit allows an election after every fault.
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from checker.engine import Kind, Property, Read, Stop
from checker.engine.search import explore
from checker.models.ensemble import Budgets, File, Grain, Member, Setup, ensemble
from checker.models.ensemble.setup import server_name
from checker.models.ensemble.status import LEADING, ElectionStatus, election_status, followers, is_established
from spec.durable import Durable
from spec.election.channel import ChannelRules
from spec.quorum import Addresses, Sid, View, addresses_of, majority_view

Outcome = tuple[Sid, frozenset[Sid]]
ALL = majority_view([1, 2, 3])
SETS: dict[str, tuple[tuple[View, View, View], tuple[int, int, int]]] = {
    "equal": ((ALL, ALL, ALL), (0, 0, 0)),
    "one has newer data": ((ALL, ALL, ALL), (1, 0, 0)),
    "all data differs": ((ALL, ALL, ALL), (1, 2, 0)),
    "an observer": ((majority_view([1, 2], [3]),) * 3, (0, 0, 0)),
    "3 thinks of five": ((ALL, ALL, majority_view([1, 2, 3, 4, 5])), (0, 0, 0)),
    "1 knows only 1 and 2": ((majority_view([1, 2]), ALL, ALL), (0, 0, 0)),
    "2 and 3 know only each other": ((ALL, majority_view([2, 3]), majority_view([2, 3])), (0, 0, 0)),
    "3 is an observer to 1 only": ((majority_view([1, 2], [3]), ALL, ALL), (0, 0, 1)),
}

TOLD: dict[str, tuple[tuple[View, View, View], tuple[int, int, int]]] = {
    "3 knows only itself": ((ALL, ALL, majority_view([3])), (0, 0, 0)),
    "2 knows only itself": ((majority_view([1, 2]), majority_view([2]), ALL), (0, 0, 0)),
    "1 knows 3, and 3 only itself": ((majority_view([1, 3]), ALL, majority_view([3])), (0, 0, 0)),
    "2 and 3 each leave one out": ((ALL, majority_view([2, 3]), majority_view([1, 3])), (0, 0, 0)),
}
"""Cases where servers vote for a leader only because of an answer to an outsider."""

OLD = addresses_of({sid: {(f"h{sid}", 2888, 3888)} for sid in (1, 2, 3)})


def moved(*sids: Sid) -> Addresses:
    """Return the addresses of a file in which these servers have other peer ports."""
    ports = {sid: (2889, 3889) if sid in sids else (2888, 3888) for sid in (1, 2, 3)}
    return addresses_of({sid: {(f"h{sid}", *each)} for sid, each in ports.items()})


ADDRESSES = {
    "1 has moved": (moved(1), OLD, OLD),
    "2 has moved": (OLD, moved(2), OLD),
    "3 has moved": (OLD, OLD, moved(3)),
    "3 has moved, and 1 knows": (moved(3), OLD, moved(3)),
    "1 has moved, and 3 knows": (moved(1), OLD, moved(1)),
    "2 thinks that 1 has moved": (OLD, moved(1), OLD),
    "1 thinks that all have moved": (moved(1, 2, 3), OLD, OLD),
}
"""The addresses in the files of 1, 2 and 3, whose views are equal."""


LEFT_OUT = ("1 knows only 1 and 2", "3 is an observer to 1 only")
"""The cases where server 3 is a voter in the views of the two others, but not in the view of server 1."""


def setup(name: str, grain: Grain, **budgets: int) -> Setup:
    views, zxids = ({**SETS, **TOLD} | {each: _addressed(each) for each in ADDRESSES})[name]
    members = tuple(
        Member(sid, File(f"zoo-{sid}.cfg", view), Durable(snapshot=zxid), late=True)
        for sid, view, zxid in zip((1, 2, 3), views, zxids, strict=True)
    )
    channels = ChannelRules(capacity=1, merge_repeats=True)
    rounds = 2 if budgets else 1
    return Setup(members, grain, (), (), Budgets(**budgets), rounds, channels)


def _addressed(name: str) -> tuple[tuple[View, View, View], tuple[int, int, int]]:
    one, two, three = (replace(ALL, addresses=each) for each in ADDRESSES[name])
    return (one, two, three), (0, 0, 0)


def recorder(made: Setup, seen: set[Outcome]) -> Property:
    """Return a property without findings that records every outcome; each distinct argument is evaluated once."""

    def check(*standings: ElectionStatus | str) -> None:
        known = dict(zip(made.sids, standings, strict=True))
        for sid, each in known.items():
            if isinstance(each, ElectionStatus) and each.state is LEADING and is_established(known, sid):
                seen.add((sid, followers(known, sid)))

    reads = tuple(Read(server_name(sid), election_status) for sid in made.sids)
    return Property("Outcomes", reads, check, Kind.SOMETIMES)


def outcomes(made: Setup) -> set[Outcome]:
    seen: set[Outcome] = set()
    exploration = explore(ensemble("outcomes", made, [recorder(made, seen)]))
    assert exploration.stop is Stop.EXHAUSTED
    return seen


@pytest.mark.parametrize("name", [*SETS, *TOLD])
def test_the_oracle_and_the_messages_have_the_same_outcomes(name: str) -> None:
    fine = outcomes(setup(name, Grain.FINE))
    assert fine == outcomes(setup(name, Grain.ORACLE))
    assert fine, "an election that comes to nothing compares nothing"


@pytest.mark.parametrize("name", list(ADDRESSES))
def test_the_outcomes_are_the_same_where_addresses_differ(name: str) -> None:
    assert outcomes(setup(name, Grain.FINE)) == outcomes(setup(name, Grain.ORACLE)) != set()
    assert outcomes(setup(name, Grain.FINE, crashes=1)) == outcomes(setup(name, Grain.ORACLE, crashes=1))


@pytest.mark.parametrize("name", list(SETS))
def test_the_outcomes_are_the_same_when_a_server_crashes_at_any_time(name: str) -> None:
    fine = outcomes(setup(name, Grain.FINE, crashes=1))
    assert fine == outcomes(setup(name, Grain.ORACLE, crashes=1))


@pytest.mark.parametrize("fault", ["early_timeouts", "notification_timeouts"])
@pytest.mark.parametrize("name", [name for name in SETS if name not in LEFT_OUT])
def test_the_outcomes_are_the_same_when_timers_fire_early(name: str, fault: str) -> None:
    """Timeouts cost rounds and messages; the oracle abstracts from both."""
    assert outcomes(setup(name, Grain.FINE, **{fault: 1})) == outcomes(setup(name, Grain.ORACLE))


@pytest.mark.parametrize("name", list(LEFT_OUT))
def test_the_oracle_omits_exactly_the_documented_outcomes(name: str) -> None:
    """The omitted outcomes need two elections with mismatched views in two rounds, which count each other's voters.

    Server 3 is not a voter in the view of server 1. Server 1 has followed 2, is LOOKING again in round 2, and sends its
    last leader to the outsider 3. Server 3 counts that as a vote for 2, and follows 2 while 1 does not yet.
    """
    fine, coarse = outcomes(setup(name, Grain.FINE, notification_timeouts=1)), outcomes(setup(name, Grain.ORACLE))
    assert coarse < fine
    assert fine - coarse == {(2, frozenset({2, 3}))}


def only_leaders(found: set[Outcome]) -> set[Sid]:
    return {leader for leader, _ in found}


EXPECTED: dict[str, Callable[[set[Sid]], bool]] = {
    # With equal data server 1 never has the better vote; 2 may win before it hears 3.
    "equal": lambda leaders: leaders == {2, 3},
    # The newest data wins every comparison, and 3 beats 2 if 1 is not heard in time.
    "one has newer data": lambda leaders: leaders == {1, 3},
    # An observer never leads.
    "an observer": lambda leaders: leaders == {2},
}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_the_possible_leaders_follow_from_the_order_of_votes(name: str) -> None:
    """Requirements R4 and R7."""
    assert EXPECTED[name](only_leaders(outcomes(setup(name, Grain.ORACLE))))
