"""The causes that disks and logs show: damage, lost data, and different histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from checker.diagnose.cause import Cause, CauseKind, NextStep, StepKind, check, recovery, serve_without
from checker.diagnose.doubt import Doubt, Doubts, WriteFate, erasure, has_whole_log, sides_text
from checker.diagnose.edits import moves
from checker.diagnose.evidence import ServerEvidence
from checker.diagnose.messages import LogKind
from checker.diagnose.situation import Situation, listed, servers_text
from checker.printable import capital
from refimpl.disk.survey import DiskSurvey, EndKind, SnapshotSurvey
from spec.text import on_a_line, required_integer
from spec.txn import counter_of, epoch_of, zxid_text


def damaged_disks(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """The damage of each data directory."""
    for server in situation.servers:
        if server.data is None:
            continue
        for kind, sentence, lines in _faults_of(server.data, server.name):
            steps, never = _without_its_disk(situation, doubts, server)
            yield Cause(kind, server.sids, sentence, tuple(map(on_a_line, lines)), steps, never)


def _faults_of(disk: DiskSurvey, name: str) -> Iterator[tuple[CauseKind, str, list[str]]]:
    """The faults of one data directory: the kind, the sentence, and the evidence."""
    directory, base, last = f"{disk.data_dir}/version-2", disk.newest_snapshot, disk.last_zxid
    damaged = [file for file in disk.logs if file.end in (EndKind.DAMAGED, EndKind.CUT)]
    unreadable = [save for save in disk.snapshots if save.fault is not None]
    if damaged or unreadable:
        lines = [f"{disk.log_dir}/version-2/{file.name}, offset {file.offset}: {file.fault}" for file in damaged]
        lines += [f"{directory}/{save.name}: {save.fault}" for save in unreadable]
        yield CauseKind.DAMAGED_LOG, f"Files of {name} are damaged.", lines
    if disk.open_gaps and not damaged:
        lines = [
            f"{disk.log_dir}/version-2: nothing between {zxid_text(gap.after)} and {zxid_text(gap.before)}"
            + (f", {gap.missing} transactions are missing" if gap.missing is not None else "")
            for gap in disk.open_gaps
        ]
        yield CauseKind.LOG_GAP, f"The log of {name} has a gap.", lines
    if without := _without_logs(disk):
        lines = [f"{directory}: {one.name} and {other.name} have no transaction between them" for one, other in without]
        yield CauseKind.LOG_MISSING, f"Logs of {name} are missing that its snapshots had.", lines[:3]
    if base is None and disk.logs and not unreadable and not has_whole_log(disk):
        lines = [f"{directory} has no snapshot, and the log begins with {zxid_text(disk.logs[0].named)}"]
        yield CauseKind.SNAPSHOT_MISSING, f"{capital(name)} has a log and no snapshot.", lines
    absent = [file.name for file in (disk.accepted, disk.current) if file.is_absent]
    if absent and not disk.is_of_3_4:
        lines = [f"{directory} has no {' and no '.join(absent)}, and transactions up to {zxid_text(last)}"]
        yield CauseKind.EPOCH_MISSING, f"{capital(name)} has lost an epoch that it has promised.", lines
    if unread := [file for file in (disk.accepted, disk.current) if file.fault is not None]:
        lines = [f"{directory}/{file.name}: {file.fault}" for file in unread]
        yield CauseKind.EPOCH_MISSING, f"{capital(name)} has an epoch that cannot be read.", lines
    accepted, current = disk.accepted.value, disk.current.value
    if accepted is not None and current is not None and (current > accepted or epoch_of(last) > current):
        lines = [f"{directory}: currentEpoch {current}, acceptedEpoch {accepted}, last transaction {zxid_text(last)}"]
        yield CauseKind.EPOCHS_CONTRADICT, f"The epochs of {name} contradict each other or its log.", lines


def _without_logs(disk: DiskSurvey) -> list[tuple[SnapshotSurvey, SnapshotSurvey]]:
    """Neighbouring snapshots of one epoch without a record between them: their logs were removed.

    A server that its leader sent a snapshot has no log before it, and then the one snapshot alone.
    """
    saves = [save for save in disk.snapshots if save.fault is None and counter_of(save.zxid)]
    return [
        (one, other)
        for one, other in pairwise(saves)
        if epoch_of(one.zxid) == epoch_of(other.zxid)
        and not any(run.first <= other.zxid and run.last > one.zxid for run in disk.runs)
    ]


def _without_its_disk(
    situation: Situation, doubts: Doubts, server: ServerEvidence
) -> tuple[tuple[NextStep, ...], tuple[str, ...]]:
    """The steps for a server whose disk cannot be trusted, and what not to do."""
    may_erase, reason = erasure(situation, doubts, server)
    if not may_erase or server.sid is None:
        look = NextStep(
            StepKind.LOOK,
            server.sids,
            f"Leave {server.name} stopped, and its files as they are: {reason}.",
        )
        return (look,), (f"Do not erase the disk of {server.name}: {reason}.",)
    assert situation.common_view is not None  # the decision needed it
    voters = situation.newest_first(situation.common_view.voters - {server.sid})
    copy = "Keep the files: they are the only copy of what they have."
    first = NextStep(
        StepKind.WAIT,
        voters,
        f"Leave server {server.sid} stopped until servers {listed(voters)} serve without it: one answers `srvr`"
        " with `Mode: leader`, and a quorum follows it.",
    )
    if not situation.has_quorum and not any(group.fate is WriteFate.LOST for group in doubts.groups):
        first = serve_without(voters, (server.sid,))
    return (
        first,
        NextStep(
            StepKind.ERASE,
            (server.sid,),
            f"Move `version-2` of server {server.sid} to another place, and keep `myid`: {reason}. {copy}",
            edits=() if server.disk is None else moves(server.disk),
        ),
        NextStep(StepKind.START, (server.sid,), f"Start server {server.sid}; its leader sends it a whole snapshot."),
        check((server.sid,)),
    ), (f"Do not start server {server.sid} with an empty disk before the others serve.",)


def uncut_records(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """A server with a record that its leader has ordered it to cut off."""
    for sid, server in sorted(situation.by_sid.items()):
        cut = server.log.kinds.get(LogKind.TRUNCATED) if server.log is not None else None
        if cut is None or server.log is None or server.disk is None:
            continue
        end, epoch = required_integer(cut.last.values["zxid"], base=16), server.disk.current.value or 0
        alone = [group.first for group in doubts.groups if group.having == (sid,)]
        alone += [zxid for pair, zxid in doubts.differing.items() if sid in pair]
        records = [zxid for zxid in alone if zxid > end and epoch_of(zxid) < epoch]
        if not records:
            continue
        steps, never = _without_its_disk(situation, doubts, server)
        yield Cause(
            CauseKind.RECORD_STAYS,
            (sid,),
            f"Server {sid} has transaction {zxid_text(min(records))}, which its leader had it cut off (finding C).",
            (
                on_a_line(server.log.line(LogKind.TRUNCATED)),
                f"its currentEpoch is {epoch}, and no other disk has the transaction",
            ),
            steps,
            never,
        )


def differing_histories(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """Disks with different transactions under one zxid."""
    differing = doubts.differing
    if not differing:
        return
    counts = Counter(sid for pair in differing for sid in pair)
    disks = situation.with_data
    odd = [sid for sid in disks if counts[sid] == len(disks) - 1] if len(disks) > 2 else []
    line = f"the disks have different transactions: {sides_text(differing)}"
    if len(odd) == 1 and odd[0] in doubts.foreign:
        server = situation.by_sid[odd[0]]
        steps, never = _without_its_disk(situation, doubts, server)
        yield Cause(
            CauseKind.FOREIGN_DISK,
            (odd[0],),
            f"The disk of server {odd[0]} has no transaction that another server has: it is of another ensemble.",
            (line,),
            steps,
            (
                *never,
                f"Do not start server {odd[0]} with this disk: with a higher epoch it gives its data to the others.",
            ),
        )
        return
    yield Cause(
        CauseKind.HISTORIES_DIFFER,
        tuple(sorted({sid for pair in differing for sid in pair})),
        "The disks have different histories: two sides have written, or one server kept what the others have dropped.",
        (line,),
        (recovery(situation, disks, "Compare the sides:", "lists what each alone has, by path."),),
        ("Do not let the sides meet before one is chosen: what the other alone has acknowledged is cut off.",),
    )


def leading_observers(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """A server that was an observer, and by its epoch wins over a disk with acknowledged transactions."""
    for group in doubts.groups:
        for sid in group.lacking if group.fate is WriteFate.LOST else ():
            log = situation.by_sid[sid].log
            if log is None or "OBSERVING" not in log.roles or sid not in situation.views:
                continue
            if not situation.views[sid].is_voter(sid):
                continue
            holders = listed(group.having)
            yield Cause(
                CauseKind.OBSERVER_LEADS,
                (sid,),
                f"Server {sid} was an observer, votes now, and lacks transactions that a client may have the answer of"
                " (finding D).",
                (on_a_line(log.line(LogKind.ROLE)), on_a_line(group.sentence)),
                (
                    NextStep(StepKind.STOP, (sid,), f"Stop server {sid}."),
                    NextStep(StepKind.START, group.having, f"Start servers {holders}, which have the transactions."),
                    recovery(
                        situation,
                        (one for one, server in situation.by_sid.items() if server.disk is not None),
                        f"If they are no quorum without server {sid}, make new data directories:",
                        "says what may be lost before it writes.",
                    ),
                ),
                (f"Do not let server {sid} take part in an election with them: its epoch is higher, and it wins.",),
            )
            return


def endangered_writes(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """Transactions that the next election can drop, while no quorum serves."""
    lost = [group for group in doubts.groups if group.fate is WriteFate.LOST and not group.unknown]
    if situation.has_quorum is not False or not lost:
        return
    yield Cause(
        CauseKind.WRITE_AT_RISK,
        lost[-1].lacking,
        "The next election can drop transactions that a client may have the answer of.",
        tuple(on_a_line(group.sentence) for group in lost),
        (_history_kept(situation, lost[-1]),),
        (f"Do not start {servers_text(lost[-1].lacking)} with their present disks: they can elect a leader without"
         " these transactions.",),
    )  # fmt: skip


def _history_kept(situation: Situation, group: Doubt) -> NextStep:
    """The step that keeps the transactions of a group in every election."""
    return recovery(
        situation,
        situation.with_data,
        f"While no quorum serves, keep what server {group.having[0]} has: with all servers stopped,",
        "says what may be lost, and makes new data directories with `--to NEW --write`.",
        group.having[0],
    )


def truncated_logs(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """A server that cut its log back, and whose leader stopped after that."""
    if situation.has_quorum:
        return  # a write that is lost by now has left no trace
    for server in situation.servers:
        log = server.log
        cut = log.kinds.get(LogKind.TRUNCATED) if log is not None else None
        role = log.kinds.get(LogKind.ROLE) if log is not None else None
        if log is None or cut is None or role is None or role.last.number < cut.last.number:
            continue
        lost = [group for group in doubts.groups if group.fate is WriteFate.LOST and server.sid in group.lacking]
        yield Cause(
            CauseKind.TRUNCATED,
            server.sids,
            f"{capital(server.name)} cut its log back when it came to its leader, and left that leader later. A write"
            " that the leader acknowledged in between can be lost (findings A and B).",
            (on_a_line(log.line(LogKind.TRUNCATED)), *(on_a_line(group.sentence) for group in lost)),
            (
                NextStep(
                    StepKind.LOOK,
                    server.sids,
                    "Ask the clients whether a write of that moment is missing; no disk shows it, if it is on none.",
                ),
                *(_history_kept(situation, group) for group in lost[-1:]),
            ),
        )


def lost_majority(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """Empty disks of voters, without which there is no quorum."""
    view = situation.common_view
    if view is None:
        return
    empty = situation.empty & view.voters
    full = situation.with_data
    if not empty or view.voters <= empty or view.contains_quorum(view.voters - empty):
        return
    keep = (
        recovery(
            situation,
            full,
            f"Make new data directories from those of {servers_text(full)}:",
            "says what may be lost, and how to start again. It writes with `--to NEW --write`.",
        )
        if full
        else NextStep(
            StepKind.LOOK, (), f"Run the diagnosis again with the data of {servers_text(view.voters - empty)}."
        )
    )
    yield Cause(
        CauseKind.MAJORITY_LOST,
        tuple(sorted(empty)),
        f"The disks of {servers_text(empty)} are empty, and the rest is no quorum.",
        tuple(f"{on_a_line(situation.by_sid[sid].place)}: no snapshot and no log" for sid in sorted(empty)),
        (
            NextStep(StepKind.STOP, tuple(sorted(empty)), f"Stop {servers_text(empty)}, or leave them stopped."),
            keep,
        ),
        ("Do not start the empty servers together: they are a quorum, elect one of themselves, and the others then lose"
         " all data.",),
    )  # fmt: skip


def restored_data(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """Servers whose data was replaced by the AdminServer."""
    logs = [
        (server, server.log)
        for server in situation.servers
        if server.log is not None and LogKind.RESTORED in server.log.kinds
    ]
    if not logs:
        return
    times = [time for _, log in logs if (time := log.kinds[LogKind.RESTORED].last.time) is not None]
    yield Cause(
        CauseKind.RESTORE_UNDONE,
        tuple(sid for server, _ in logs for sid in server.sids),
        "A snapshot was restored by the AdminServers, which keep the restored data in memory alone. Once their leader"
        " has stopped, the data is that of before (finding I).",
        tuple(on_a_line(log.line(LogKind.RESTORED)) for _, log in logs),
        (
            NextStep(StepKind.STOP, (), "Stop all clients: another restore undoes what they write now."),
            NextStep(
                StepKind.LOOK,
                (),
                "Take the newest `log.*` that was moved away before the restore: the servers wrote on into it."
                " `zkTxnLogToolkit.sh FILE` lists its changes. Those after"
                f" {f'{max(times):%H:%M:%S}' if times else 'the restore'}, up to the next epoch, are undone.",
            ),
            NextStep(
                StepKind.LOOK,
                (),
                "Compare the znodes of all servers with the backup. Are they those of before the restore? Then put the"
                " backup on the disks of stopped servers (docs/how-to-restore-a-backup.md), and make those changes"
                " again. Are they those of the backup? Then restart each server once, the leader last, before clients"
                " write.",
            ),
        ),
        ("Do not compare `Zxid` values: after a restore servers with equal ones can have different data.",),
    )


def logged_faults(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """The causes that the log of a server alone shows."""
    for server in situation.servers:
        log = server.log
        if log is None:
            continue
        if LogKind.NO_SPACE in log.kinds:
            yield Cause(
                CauseKind.FULL_DISK,
                server.sids,
                f"The disk of {server.name} is full.",
                (on_a_line(log.line(LogKind.NO_SPACE)),),
                (
                    NextStep(
                        StepKind.EDIT,
                        server.sids,
                        f"Make room on the disk of {server.name}: remove snapshots and logs that its newest three whole"
                        " snapshots do not need (`zkCleanup.sh`), or other files.",
                    ),
                    NextStep(StepKind.START, server.sids, f"Start {server.name}, and wait until it serves."),
                    check(server.sids, f"{server.name} serves"),
                ),
                ("Do not remove the newest snapshot, nor a log behind it.",),
            )
        created = log.kinds.get(LogKind.EPOCH_CREATED)
        if created is not None and created.last.values["epoch"] != "0":
            steps, never = _without_its_disk(situation, doubts, server)
            yield Cause(
                CauseKind.EPOCH_MISSING,
                server.sids,
                f"{capital(server.name)} has lost an epoch that it had promised.",
                (on_a_line(log.line(LogKind.EPOCH_CREATED)),),
                steps,
                never,
            )
