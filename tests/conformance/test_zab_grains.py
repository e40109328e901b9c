"""Coarse grains of Zab have the same outcomes as the fine grain, on three servers, exhaustively.

Three choices make a run coarser: discovery in one step, a synchronous disk, an election by the oracle. Each is compared
with the finer grain by its outcomes. An outcome is the state of all servers where no packet is in flight between leader
and learner, and no disk or commit processor has work left. Where the outcomes of two grains differ, the test states the
difference and its reason.

The state of a server consists of both epochs and its log and snapshot on disk; if the server serves, also of its leader
and the transactions it has delivered. A server that leads or follows without serving has only its disk. The grains may
differ in its role: whether it waits for others in that role or looks for a leader.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from checker.engine import Finding, Kind, Model, Property, Read, Stop
from checker.engine.search import explore
from checker.engine.semantics import read, successors
from checker.models.ensemble import Budgets, File, Grain, Member, Setup, ensemble
from checker.models.ensemble.connection import Connection
from checker.models.ensemble.setup import connection_name, server_name
from spec.durable import Durable
from spec.election.channel import ChannelRules
from spec.quorum import Sid, majority_view
from spec.server import Server
from spec.txn import Txn, epoch_of, make_zxid
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, ZabRules

FILE = File("zoo.cfg", majority_view([1, 2, 3]))
BUSY = "busy"


class Has(NamedTuple):
    """The state of one server; `behind` and `delivered` are None unless it serves, behind a leader that serves."""

    durable: Durable
    behind: Sid | None
    delivered: tuple[Txn, ...] | None


Outcome = tuple[Has, ...]


# -- Outcomes ------------------------------------------------------------------------------------------------


def has(server: Server) -> Has | str:
    """Return the state of a server, or `BUSY` while its disk or its commit processor has work."""
    part = server.zab
    if part is not None and (part.queue or part.commits):
        return BUSY
    if part is None or part.phase not in (LeaderPhase.BROADCAST, LearnerPhase.BROADCAST):
        return Has(server.durable, None, None)
    last, behind = (part.committed, server.sid) if isinstance(part, Leader) else _as_learner(part)
    return Has(server.durable, behind, tuple(txn for txn in server.durable.txns if txn.zxid <= last))


def _as_learner(part: Learner) -> tuple[int, Sid]:
    return part.delivered, part.leader


def is_quiet(connection: Connection | None) -> bool:
    return connection is None or not (connection.up or connection.down)


def reads_of(setup: Setup) -> tuple[Read, ...]:
    servers = (Read(server_name(sid), has) for sid in setup.sids)
    return (*servers, *(Read(connection_name(*pair), is_quiet) for pair in setup.quorum_pairs))


def outcome(sids: tuple[Sid, ...], seen: Iterable[Any]) -> Outcome | None:
    """Return the outcome of a state, from the values of `reads_of`; None while something is in flight."""
    shown = tuple(seen)
    each, quiet = shown[: len(sids)], shown[len(sids) :]
    if not all(quiet) or BUSY in each:
        return None
    serving = {sid for sid, one in zip(sids, each, strict=True) if one.behind == sid}
    return tuple(one if one.behind in serving else Has(one.durable, None, None) for one in each)


@cache
def outcomes(setup: Setup) -> frozenset[Outcome]:
    model, reads = ensemble("outcomes", setup), reads_of(setup)
    known, left, found = {model.initial()}, [model.initial()], set()
    while left:
        row = left.pop()
        shown = read(model, reads, row)
        assert shown is not None
        found.add(outcome(setup.sids, shown))
        new = {after for _, after in successors(model, row)} - known
        known |= new
        left += new
    return frozenset(each for each in found if each is not None)


def with_expectations(setup: Setup, expected: frozenset[Outcome], allowed: frozenset[Outcome]) -> Model:
    """Return a model with a witness for each expected outcome, and a violation for each outcome that is not allowed.

    It replaces the plain search where the state space is too large for that.
    """
    reads, sids = reads_of(setup), setup.sids

    def strange(*seen: Any) -> Finding | None:
        came_to = outcome(sids, seen)
        if came_to is None or came_to in allowed:
            return None
        return Finding("an outcome that the coarse grain does not have", (("outcome", came_to),))

    def witness(number: int, wanted: Outcome) -> Property:
        def check(*seen: Any) -> Finding | None:
            return Finding("it comes to that") if outcome(sids, seen) == wanted else None

        return Property(f"outcome {number}", reads, check, Kind.SOMETIMES)

    witnesses = [witness(number, each) for number, each in enumerate(sorted(expected, key=repr))]
    return ensemble("outcomes", setup, [Property("nothing else", reads, strange), *witnesses])


# -- Setups --------------------------------------------------------------------------------------------------


def on_disk(accepted: int, current: int, *txns: tuple[int, int]) -> Durable:
    return Durable(accepted, current, 0, tuple(Txn(make_zxid(*zxid), f"{zxid[0]}:{zxid[1]}") for zxid in txns))


NOTHING, ONE_WRITE, A_CRASH = Budgets(), Budgets(writes=1), Budgets(writes=1, crashes=1, restarts=1)
EMPTY = (Durable(),) * 3
DISKS: dict[str, tuple[Durable, Durable, Durable]] = {
    "nobody has anything": EMPTY,
    "3 is behind": (on_disk(1, 1, (1, 1)), on_disk(1, 1, (1, 1)), on_disk(1, 1)),
    "all logs differ": (on_disk(1, 1, (1, 1), (1, 2)), on_disk(1, 1, (1, 1)), on_disk(1, 1)),
    "3 missed an epoch and has a tail of its own": (
        on_disk(2, 2, (1, 1), (2, 1)),
        on_disk(2, 2, (1, 1)),
        on_disk(1, 1, (1, 1), (1, 2)),
    ),
    "1 and 2 have accepted an epoch that never began": (
        on_disk(2, 1, (1, 1)),
        on_disk(2, 1, (1, 1)),
        on_disk(1, 1, (1, 1)),
    ),
}


def setup(
    grain: Grain = Grain.ORACLE,
    budgets: Budgets = ONE_WRITE,
    *,
    disks: tuple[Durable, ...] = EMPTY,
    one_step: bool = False,
    disk_takes_time: bool = False,
    commits_take_time: bool = False,
    rounds: int = 1,
) -> Setup:
    """Return three running servers; by the oracle there is one election unless the budgets allow more."""
    if grain is Grain.ORACLE:
        budgets = replace(budgets, elections=budgets.elections or 1)
    return Setup(
        members=tuple(Member(sid, FILE, durable) for sid, durable in zip((1, 2, 3), disks, strict=True)),
        grain=grain,
        budgets=budgets,
        round_limit=rounds,
        channels=ChannelRules(capacity=1, merge_repeats=True),
        zab=ZabRules(disk_takes_time, commits_take_time),
        discovery_in_one_step=one_step,
    )


# -- Discovery in one step, and packet by packet -------------------------------------------------------------


@pytest.mark.parametrize("name", list(DISKS))
def test_discovery_in_one_step_comes_to_what_its_packets_come_to(name: str) -> None:
    one_step = outcomes(setup(disks=DISKS[name], one_step=True))

    assert one_step == outcomes(setup(disks=DISKS[name]))
    assert any(has.delivered for each in one_step for has in each), "an election without a write compares little"


def epochs_that_nobody_entered(found: Iterable[Outcome]) -> set[Outcome]:
    """Return the outcomes with an accepted epoch that is above every currentEpoch."""

    def entered(each: Outcome) -> bool:
        return max(has.durable.accepted_epoch for has in each) <= max(has.durable.current_epoch for has in each)

    return {each for each in found if not entered(each)}


def test_with_a_crash_it_leaves_out_epochs_that_were_accepted_and_never_entered() -> None:
    """In one step an elected leader enters its epoch, so no crash can fall between LEADERINFO and ACKEPOCH.

    Packet by packet it can, and then acceptedEpoch is above every currentEpoch on the remaining disks. There is no
    other difference; such disks can be given at the start (see `DISKS`).
    """
    one_step, packets = outcomes(setup(budgets=A_CRASH, one_step=True)), outcomes(setup(budgets=A_CRASH))

    assert one_step < packets
    assert packets - one_step == epochs_that_nobody_entered(packets)


@pytest.mark.slow
def test_after_a_lost_connection_and_another_election_it_leaves_out_such_epochs_and_what_follows_on_them() -> None:
    budgets = Budgets(writes=1, disconnects=1, elections=2)

    assert outcomes(setup(budgets=budgets, one_step=True)) < outcomes(setup(budgets=budgets))


# -- A disk that takes time, and one that does not -----------------------------------------------------------


@pytest.mark.parametrize("name", list(DISKS))
def test_without_a_crash_the_disk_may_take_its_time(name: str) -> None:
    disks = DISKS[name]
    at_once = outcomes(setup(disks=disks, one_step=True))

    assert at_once == outcomes(setup(disks=disks, one_step=True, disk_takes_time=True))


@pytest.mark.slow
@pytest.mark.parametrize("slow", ["disk_takes_time", "commits_take_time"])
def test_nor_with_two_writes_and_what_is_committed_may_take_its_time_too(slow: str) -> None:
    budgets = Budgets(writes=2)
    in_time = setup(
        budgets=budgets,
        one_step=True,
        disk_takes_time=slow == "disk_takes_time",
        commits_take_time=slow == "commits_take_time",
    )

    assert outcomes(setup(budgets=budgets, one_step=True)) == outcomes(in_time)


def half_synchronised(found: Outcome) -> bool:
    """Whether a server has on disk transactions or a snapshot of an epoch above its currentEpoch."""
    return any(epoch_of(has.durable.last_zxid) > has.durable.current_epoch for has in found)


def leader_forgot(found: Outcome) -> bool:
    """Whether no server serves, and the logs of the servers that entered an epoch differ."""
    logs = {has.durable.txns for has in found if has.durable.current_epoch}
    return all(has.behind is None for has in found) and len(logs) > 1


def test_with_a_crash_a_disk_that_takes_time_can_lose_what_it_was_asked_for() -> None:
    """All outcomes of the synchronous disk occur, and two kinds more; each is the loss of a queue in a crash.

    A follower crashes while it handles NEWLEADER: its log or snapshot is on disk, its currentEpoch is not. Or a leader
    crashes before it has logged its own proposal, which a follower has already logged.
    """
    at_once = outcomes(setup(budgets=A_CRASH, one_step=True))
    in_time = outcomes(setup(budgets=A_CRASH, one_step=True, disk_takes_time=True))

    assert at_once < in_time
    assert all(half_synchronised(each) or leader_forgot(each) for each in in_time - at_once)
    assert any(half_synchronised(each) for each in in_time - at_once)
    assert any(leader_forgot(each) for each in in_time - at_once)
    assert not any(half_synchronised(each) for each in at_once)


# -- The election by the oracle, and message by message ------------------------------------------------------


def agrees(fine: Setup, expected: frozenset[Outcome], allowed: frozenset[Outcome]) -> None:
    """Assert that a fine run has every expected outcome, and no outcome that is not allowed."""
    exploration = explore(with_expectations(fine, expected, allowed))

    assert not exploration.violations
    assert len(exploration.found) == len(expected) > 1
    assert exploration.stop is Stop.EXHAUSTED


@pytest.mark.parametrize("name", list(DISKS))
def test_leading_and_following_after_the_oracle_come_to_what_they_come_to_after_messages(name: str) -> None:
    """One election, one write, no fault: 500,000 to a million states by messages, about a thousand by the oracle."""
    expected = outcomes(setup(disks=DISKS[name]))

    agrees(setup(Grain.FINE, disks=DISKS[name]), expected, expected)


@pytest.mark.parametrize("timer", ["early_timeouts", "notification_timeouts"])
def test_so_they_do_when_a_timer_of_the_election_fires_early(timer: str) -> None:
    expected = outcomes(setup(budgets=NOTHING))

    agrees(setup(Grain.FINE, Budgets(**{timer: 1})), expected, expected)


@pytest.mark.slow
def test_with_a_crash_messages_come_to_what_lies_between_two_coarse_runs() -> None:
    """The grains count elections in different ways, so with a fault no budget makes them equal.

    Message by message, two rounds include every outcome of one election by the oracle. They have no outcome that three
    such elections with one spare lost connection lack. The lost connection represents a FOLLOWERINFO that the leader
    reads after its learner has gone: the learner sent it while the leader was still looking, which only the fine grain
    allows.
    """
    expected = outcomes(setup(budgets=Budgets(crashes=1)))
    allowed = outcomes(setup(budgets=Budgets(crashes=1, elections=3, disconnects=1)))

    agrees(setup(Grain.FINE, Budgets(crashes=1), rounds=2), expected, allowed)
