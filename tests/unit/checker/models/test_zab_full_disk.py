"""A server whose log cannot be written steps down, and acknowledges nothing until its process starts again."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from checker.engine import Finding, Model, Move, Property, Read
from checker.engine.search import explore
from checker.engine.semantics import successors
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, ServerAction, Setup, ensemble
from checker.models.ensemble.setup import server_name
from checker.present.ensemble import disk_of
from checker.properties import ENSEMBLE_PROPERTIES
from spec.effects import Disconnect, Effects, Persist, Send, ServerStep, Step, WriteEpochs
from spec.quorum import majority_view
from spec.server import Server, step
from spec.zab.events import LogFailed, Receive, Synced
from spec.zab.packets import Ack, LeaderInfo, NewLeader, QuorumPacket
from spec.zab.state import Append, Learner, ZabRules

SIDS = (1, 2, 3)
RULES = ZabRules()


def model(*names: str, packets: bool = False, **budgets: int) -> Model:
    """Three servers with an established leader, server 3, and these properties."""
    file = File("zoo.cfg", majority_view(SIDS))
    setup = Setup(
        tuple(Member(sid, file) for sid in SIDS),
        Grain.ORACLE,
        (Prologue(SIDS),),
        budgets=Budgets(**{"writes": 1, "elections": 2, "full_disks": 1, **budgets}),
        zab=RULES,
        discovery_in_one_step=not packets,
    )
    return ensemble("full disks", setup, [ENSEMBLE_PROPERTIES.build(setup, name) for name in names])


def after(made: Model, *actions: tuple[ServerAction, int]) -> dict[int, Server]:
    """The servers after these actions, each by the server that acts."""
    row = made.initial()
    for action, sid in actions:
        row = next(
            found
            for move, found in successors(made, row)
            if move.action == action and move.arguments[action.traits.actor] == sid
        )
    return {sid: row[made.index[server_name(sid)]] for sid in SIDS}


def packets_of(effects: Effects) -> list[QuorumPacket]:
    """The packets to a leader or a learner among some effects; notifications of the election are none of them."""
    return [each.message for each in effects if isinstance(each, Send) and isinstance(each.message, QuorumPacket)]


WRITE = (ServerAction.CLIENT_WRITE, 3)


def test_a_leader_with_a_full_disk_looks_for_a_leader_and_has_not_logged() -> None:
    before = after(model(), WRITE)[3]
    full = after(model(), WRITE, (ServerAction.FILL_DISK, 3))[3]
    assert (full.disk_full, full.zab) == (True, None)
    assert full.durable == before.durable
    assert full.durable.txns == ()


def test_a_follower_with_a_full_disk_closes_its_connection_and_sends_no_ack() -> None:
    follower = after(model(), WRITE, (ServerAction.RECEIVE, 1))[1]
    done = step(follower, LogFailed(), zab=RULES)
    assert done is not None
    assert done.effects[0] == Disconnect(3)
    assert not packets_of(done.effects)
    assert not any(isinstance(effect, Persist) for effect in done.effects)


def test_a_disk_is_full_only_for_a_server_that_writes() -> None:
    idle = after(model())[1]
    assert step(idle, LogFailed(), zab=RULES) is None


def test_a_crash_makes_space_before_the_next_start() -> None:
    made = model(crashes=1, restarts=1)
    actions = [WRITE, (ServerAction.FILL_DISK, 3), (ServerAction.CRASH, 3), (ServerAction.RESTART, 3)]
    assert [after(made, *actions[:n])[3].disk_full for n in (2, 4)] == [True, False]


def steps(made: Model) -> Iterator[tuple[tuple[object, ...], Move, tuple[object, ...]]]:
    """Every step of the model."""
    seen, waiting = {made.initial()}, [made.initial()]
    while waiting:
        row = waiting.pop()
        for move, found in successors(made, row):
            yield row, move, found
            if found not in seen:
                seen.add(found)
                waiting.append(found)


def test_a_full_disk_never_changes_and_no_operation_waits_for_it() -> None:
    """Over all steps of the model: each ACK follows a write, so no ACK is sent either."""
    made, looked = model(), 0
    for before, _, found in steps(made):
        for sid in SIDS:
            old, new = before[made.index[server_name(sid)]], found[made.index[server_name(sid)]]
            assert isinstance(old, Server)
            assert isinstance(new, Server)
            if old.disk_full:
                looked += 1
                assert new.durable == old.durable
                assert new.zab is None or new.zab.queue == ()
    assert looked


def test_a_server_with_a_full_disk_gives_up_a_new_leader_before_it_accepts_the_epoch() -> None:
    follower = next(
        server
        for _, _, row in steps(model(packets=True))
        if isinstance(server := row[0], Server) and server.disk_full and server.zab is not None
    )
    assert follower.zab is not None
    accepted = follower.durable.accepted_epoch
    done = step(follower, Receive(follower.election.vote.leader, LeaderInfo(accepted + 1)), zab=RULES)  # type: ignore[union-attr]
    assert done is not None
    assert done.state.zab is None
    assert done.state.durable == follower.durable
    assert not packets_of(done.effects)
    assert not any(isinstance(effect, WriteEpochs) for effect in done.effects)


@pytest.mark.parametrize("event", [Synced(), Receive(3, NewLeader(1 << 32))])
def test_a_server_that_looks_after_a_full_disk_has_no_part_that_could_write(event) -> None:
    full = after(model(), WRITE, (ServerAction.RECEIVE, 1), (ServerAction.FILL_DISK, 1))[1]
    assert step(full, event, zab=RULES) is None


def acknowledged_without_log(server: Server, *_: object) -> ServerStep[Server] | None:
    """A mutant: a follower acknowledges the transaction that it could not write, and goes on."""
    part = server.zab
    if not isinstance(part, Learner) or not part.queue or not isinstance(part.queue[0], Append):
        return None
    ack = Send(part.leader, Ack(part.queue[0].txn.zxid))
    return Step(replace(server, zab=replace(part, queue=part.queue[1:])), (ack,))


@pytest.mark.parametrize("mutated", [False, True])
def test_an_ack_for_a_write_on_a_full_disk_loses_the_write(mutated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash of the leader shows it. The specification as it is keeps the write."""
    if mutated:
        monkeypatch.setattr("spec.server._log_failed", acknowledged_without_log)
    ran = explore(model("LeaderLogCompleteness", crashes=1))
    assert ran.exhausted is not mutated
    assert ("LeaderLogCompleteness" in ran.found) is mutated


def test_servers_with_full_disks_exist_in_the_model() -> None:
    made = model()
    full = Property("full", (Read(server_name(3), lambda server: server.disk_full or None),), lambda _: Finding("full"))
    assert explore(made.with_properties([full])).found["full"].depth == 2


def test_a_trace_shows_the_full_disk_until_the_process_starts_again() -> None:
    full = after(model(crashes=1, restarts=1), WRITE, (ServerAction.FILL_DISK, 3))[3]
    back = after(
        model(crashes=1, restarts=1),
        WRITE,
        (ServerAction.FILL_DISK, 3),
        (ServerAction.CRASH, 3),
        (ServerAction.RESTART, 3),
    )[3]
    assert disk_of(full)["disk"] == "full"
    assert "disk" not in disk_of(back)
