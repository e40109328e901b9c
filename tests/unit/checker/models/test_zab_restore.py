"""A snapshot that an operator restores: it stays with the correction, and 3.9.5 loses it as real servers do.

The runs of the variant are rows of the table that `research.restore` measured on real servers
(docs/findings/restore-undone.md): the data before the snapshot is BEFORE, the data after it UNDONE, and the write that
is acknowledged after the restore AFTER.
"""

import pytest
from msgspec.structs import replace

from checker.engine import Model
from checker.engine.semantics import successors
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, ServerAction, Setup, ensemble
from checker.models.ensemble.actions import SETTLING, urgency
from checker.models.ensemble.setup import server_name
from checker.present.ensemble import disk_of
from spec.durable import Durable
from spec.effects import Observe
from spec.quorum import majority_view
from spec.server import Server, crash, step
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.events import ClientWrite, Restored, Synced, Undone
from spec.zab.state import Leader, LeaderPhase, StaleMemory, ZabRules

SIDS = (1, 2, 3)
BEFORE, UNDONE = Txn(make_zxid(1, 1), 1), Txn(make_zxid(1, 2), 2)
AFTER = Txn(make_zxid(2, 1), 1)
RIGHT, WRONG = ZabRules(), ZabRules(variants=frozenset({Variant.RESTORE_UNDONE}))
BOTH = [pytest.param(RIGHT, id="corrected"), pytest.param(WRONG, id="3.9.5")]
RESTORE = (ServerAction.RESTORE, BEFORE.zxid)
WRITE = (ServerAction.CLIENT_WRITE, 3)


def model(zab: ZabRules, restores: int = 1) -> Model:
    """Three servers with BEFORE and UNDONE, led by server 3."""
    file = File("zoo.cfg", majority_view(SIDS))
    setup = Setup(
        tuple(Member(sid, file, Durable(1, 1, log=(BEFORE, UNDONE))) for sid in SIDS),
        Grain.ORACLE,
        (Prologue(SIDS),),
        budgets=Budgets(crashes=6, restarts=6, elections=4, writes=2, restores=restores),
        variants=zab.variants,
        zab=zab,
        discovery_in_one_step=True,
    )
    return ensemble("restore", setup, [])


def after(zab: ZabRules, *actions: tuple[ServerAction, int]) -> dict[int, Server]:
    """The servers after these actions, by their first arguments; the ensemble settles after each."""
    made = model(zab)
    row = made.initial()
    for action, first in actions:
        possible = successors(made, row)
        (row,) = (row for move, row in possible if move.action == action and move.arguments[0] == first)
        while urgent := [pair for pair in successors(made, row) if pair[0].action in SETTLING]:
            row = min(urgent, key=lambda pair: urgency(pair[0]))[1]
    return {sid: row[made.index[server_name(sid)]] for sid in SIDS}


def trees(servers: dict[int, Server]) -> set[tuple[Txn, ...]]:
    """The different trees of the servers that run."""
    return {tuple(server.durable.txns) for server in servers.values() if server.runs}


def leading(tree: tuple[Txn, ...], **fields: object) -> Server:
    """Server 3, which leads epoch 2 with these transactions."""
    leader = Leader(LeaderPhase.BROADCAST, 2, (), committed=make_zxid(2))
    return Server(3, majority_view(SIDS), Durable(2, 2, log=tree), zab=replace(leader, **fields))


# Rows of the table.


@pytest.mark.parametrize("zab", BOTH)
def test_after_a_restore_every_server_has_the_snapshot_and_what_is_written_then(zab: ZabRules) -> None:
    assert trees(after(zab, RESTORE, WRITE)) == {(BEFORE, AFTER)}


@pytest.mark.parametrize(("zab", "tree"), [(RIGHT, (BEFORE, AFTER)), (WRONG, (BEFORE, UNDONE))])
def test_when_the_leader_stops_the_restore_stays_or_is_undone(zab: ZabRules, tree: tuple[Txn, ...]) -> None:
    assert trees(after(zab, RESTORE, WRITE, (ServerAction.CRASH, 3))) == {tree}


@pytest.mark.parametrize(("zab", "tree"), [(RIGHT, (BEFORE, AFTER)), (WRONG, ())])
def test_when_all_stop_and_start_again_the_ensemble_has_the_restored_data_or_is_empty(
    zab: ZabRules, tree: tuple[Txn, ...]
) -> None:
    ends = [(ServerAction.CRASH, sid) for sid in SIDS]
    starts = [(ServerAction.RESTART, sid) for sid in SIDS]
    assert trees(after(zab, RESTORE, WRITE, *ends, *starts)) == {tree}


def test_the_way_out_is_a_restart_of_each_server_the_leader_last() -> None:
    way_out = [(action, sid) for sid in SIDS for action in (ServerAction.CRASH, ServerAction.RESTART)]
    restarted = after(WRONG, RESTORE, *way_out)
    assert trees(restarted) == {(BEFORE,)}
    (leader,) = (sid for sid, server in restarted.items() if isinstance(server.zab, Leader))
    ends = [(ServerAction.CRASH, sid) for sid in SIDS]
    starts = [(ServerAction.RESTART, sid) for sid in SIDS]
    for run in ([(ServerAction.CRASH, leader)], [*ends, *starts]):
        ((before, written),) = trees(after(WRONG, RESTORE, *way_out, (ServerAction.CLIENT_WRITE, leader), *run))
        assert (before, written.value) == (BEFORE, 1)


# The step.


@pytest.mark.parametrize("zab", BOTH)
def test_a_server_reports_what_the_restore_undoes_and_its_zxids_go_on(zab: ZabRules) -> None:
    restored = step(leading((BEFORE, UNDONE)), Restored((BEFORE,)), zab=zab)
    assert restored is not None
    assert restored.effects == (Observe(Undone(3, (UNDONE,))),)
    assert restored.state.durable.last_zxid == UNDONE.zxid
    written = step(restored.state, ClientWrite(1), zab=zab)
    assert written is not None
    logged = step(written.state, Synced(), zab=zab)
    assert logged is not None
    assert logged.state.durable.txns == (BEFORE, AFTER)


@pytest.mark.parametrize(
    ("zab", "disk"),
    [(RIGHT, Durable(2, 2, UNDONE.zxid, (BEFORE,))), (WRONG, Durable(2, 2))],
    ids=["corrected", "3.9.5"],
)
def test_a_crash_leaves_the_snapshot_or_only_the_epochs_on_the_disk(zab: ZabRules, disk: Durable) -> None:
    restored = step(leading((BEFORE, UNDONE)), Restored((BEFORE,)), zab=zab)
    assert restored is not None
    stopped = crash(restored.state, zab)
    assert stopped is not None
    assert (stopped.durable, stopped.remains) == (disk, StaleMemory())


def test_variant_restore_undone() -> None:
    for zab, shown in ((RIGHT, {}), (WRONG, {"databaseOfPeer": ["1:1=1", "1:2=2"], "filesMovedAway": True})):
        restored = step(leading((BEFORE, UNDONE)), Restored((BEFORE,)), zab=zab)
        assert restored is not None
        fields = disk_of(restored.state)
        assert {name: fields[name] for name in fields if name in ("databaseOfPeer", "filesMovedAway")} == shown


def test_a_restore_waits_until_nothing_waits() -> None:
    busy = step(leading((BEFORE, UNDONE)), ClientWrite(1), zab=RIGHT)
    assert busy is not None
    assert step(busy.state, Restored((BEFORE,)), zab=RIGHT) is None
    assert step(crash(leading((BEFORE,)), RIGHT) or busy.state, Restored((BEFORE,)), zab=RIGHT) is None


@pytest.mark.parametrize(("restores", "zxids"), [(1, [(BEFORE.zxid,)]), (0, [])])
def test_an_operator_may_restore_each_earlier_snapshot_while_there_is_a_budget(
    restores: int, zxids: list[tuple[int]]
) -> None:
    made = model(RIGHT, restores=restores)
    assert [move.arguments for move, _ in successors(made, made.initial()) if move.action == "restore"] == zxids
