"""The causes that a diagnosis can name, each with the evidence for it, the next steps, and what not to do.

Rules of this module:

- One function a cause, in the order in which they are named: what loses data comes before what stops the service, and
  what explains others before what follows from it.
- A cause is named only where the evidence shows it. `Cause.evidence` has the sentences, with file, line or zxid.
- A step that removes data names what must be shown first; `doubt` decides whether a disk may be erased.
- No step is a guess: where the evidence allows several, the cause says which input decides between them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from itertools import pairwise

from checker.diagnose.doubt import Doubts, WriteFate, erasure, has_whole_log
from checker.diagnose.evidence import ServerEvidence
from checker.diagnose.messages import LogKind
from checker.diagnose.situation import Situation, listed
from checker.printable import capital
from checker.rollout.inputs.folders import settings
from checker.rollout.inputs.live import NoAnswerError, Silence
from refimpl.disk.survey import DiskSurvey, EndKind, SnapshotSurvey
from spec.config.problems import is_true
from spec.quorum import Sid
from spec.text import on_a_line, required_integer
from spec.txn import counter_of, epoch_of, zxid_text


class CauseKind(StrEnum):
    """The causes, in the order in which a diagnosis names them."""

    PENDING_VIEW = "pending-view"
    TWO_LEADERS = "two-leaders"
    WRONG_MYID = "wrong-myid"
    IDS_RENAMED = "ids-renamed"
    RESTORE_UNDONE = "restore-undone"
    RECORD_STAYS = "trunc-after-snap"
    HISTORIES_DIFFER = "histories-differ"
    FOREIGN_DISK = "foreign-disk"
    DAMAGED_LOG = "damaged-log"
    LOG_GAP = "log-gap"
    LOG_MISSING = "log-missing"
    SNAPSHOT_MISSING = "snapshot-missing"
    EPOCH_MISSING = "epoch-missing"
    EPOCHS_CONTRADICT = "epochs-contradict"
    FULL_DISK = "full-disk"
    OBSERVER_LEADS = "observer-becomes-voter"
    PROMOTION_STALLED = "promotion-stalled"
    STALE_NEXT = "stale-next"
    BAD_FILE = "bad-file"
    RECONFIG_MIXED = "reconfig-mixed"
    OLD_FILE = "old-file"
    SWAPPED_PORTS = "swapped-ports"
    TLS_MIXED = "tls-mixed"
    UNRESOLVABLE_HOST = "unresolvable-host"
    MAJORITY_LOST = "majority-lost"
    NO_QUORUM = "no-quorum"
    TRUNCATED = "truncated"


class StepKind(Enum):
    """The kinds of steps that a diagnosis can name; the value is that in JSON."""

    EDIT = "edit"
    START = "start"
    RESTART = "restart"
    STOP = "stop"
    WAIT = "wait"
    ERASE = "erase"
    RECOVER = "recover"
    LOOK = "look"


@dataclass(frozen=True)
class NextStep:
    """One step for the operator: its kind, its servers in the order in which they are touched, and the sentence.

    An `edit` of one file has its name and the keys with their new values; a file with one value has the key "".
    """

    kind: StepKind
    servers: tuple[Sid, ...]
    sentence: str
    file: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """A cause: its servers, one sentence, the evidence, the steps in their order, and what not to do."""

    kind: CauseKind
    servers: tuple[Sid, ...]
    sentence: str
    evidence: tuple[str, ...]
    steps: tuple[NextStep, ...] = ()
    never: tuple[str, ...] = ()


def causes(situation: Situation, doubts: Doubts) -> tuple[Cause, ...]:
    """All causes that the evidence shows, the one to mend first at the beginning."""
    named = (cause for find in CAUSES for cause in find(situation, doubts))
    return tuple(sorted(named, key=lambda cause: [*CauseKind].index(cause.kind)))


# Identities.


def _two_leaders(situation: Situation, _: Doubts) -> Iterator[Cause]:
    leaders = situation.leaders if len(situation.leaders) > 1 else situation.logged_leaders
    if len(leaders) < 2 or _versions_differ(situation):
        return
    how = "answers as leader" if leaders == situation.leaders else "leads by its log"
    lines = [
        f"server {sid} {how}, and by its configuration {listed(situation.views[sid].voters)} vote"
        for sid in leaders
        if sid in situation.views
    ]
    if (pair := situation.disjoint) is not None:
        lines.append(f"servers {listed(pair.a)} and servers {listed(pair.b)} are quorums that share no server")
    yield Cause(
        CauseKind.TWO_LEADERS,
        leaders,
        f"Servers {listed(leaders)} lead at the same time, and each may answer clients.",
        tuple(lines),
        (
            NextStep(StepKind.STOP, (), "Stop all clients, so that neither side acknowledges more."),
            NextStep(
                StepKind.RECOVER,
                leaders,
                "Copy the data directories of all servers, and compare the two sides: `python -m checker recover` with"
                " the copies lists what each side alone has, by path. Decide which side stays.",
            ),
        ),
        (
            "Do not restart a server with another file, and do not let the two sides meet: the side with the older"
            " epoch is cut back, and what it alone has acknowledged is lost.",
        ),
    )


def _wrong_myid(situation: Situation, _: Doubts) -> Iterator[Cause]:
    places: defaultdict[Sid, list[str]] = defaultdict(list)
    for server in situation.servers:
        if server.disk is not None and server.disk.myid.value is not None:
            places[server.disk.myid.value].append(server.place)
    for sid, folders in sorted(places.items()):
        if len(folders) > 1:
            yield Cause(
                CauseKind.WRONG_MYID,
                (sid,),
                f"{len(folders)} data directories have the id {sid}.",
                tuple(f"{on_a_line(folder)}: myid is {sid}" for folder in folders),
                (
                    NextStep(StepKind.STOP, (sid,), f"Stop the servers of {' and '.join(map(on_a_line, folders))}."),
                    NextStep(
                        StepKind.EDIT,
                        (sid,),
                        "Write into each myid the number of the `server.N` line with the address of its machine. If one"
                        " of the directories is a copy of the other, start it empty, with its own myid alone.",
                    ),
                ),
                ("Do not start both: two servers with one id count as one in a quorum, and each connection replaces"
                 " the other's.",),
            )  # fmt: skip
    common = situation.common_view
    for server in situation.servers:
        view = server.view if server.view is not None else common
        myid = server.disk.myid.value if server.disk is not None else None
        if view is None or myid is None or view.standalone or myid in view.members:
            continue
        yield Cause(
            CauseKind.WRONG_MYID,
            (myid,),
            f"The id {myid} is no member of the configuration that its server has.",
            (f"{on_a_line(server.place)}: myid is {myid}, and the members are {listed(view.members)}",),
            (
                NextStep(
                    StepKind.EDIT,
                    (myid,),
                    "Write into myid the number of the `server.N` line with the address of this machine; or, if the"
                    f" server is new, add `server.{myid}` by a roll-out that is checked (`python -m checker rollout`).",
                ),
            ),
            ("Do not take the id of a server that has run elsewhere: what it has acknowledged is not on this disk.",),
        )


def _ids_renamed(situation: Situation, _: Doubts) -> Iterator[Cause]:
    for server in situation.servers:
        sid = server.disk.myid.value if server.disk is not None else None
        former = server.log.former_sid if server.log is not None else None
        if sid is None or former is None or former == sid:
            continue
        yield Cause(
            CauseKind.IDS_RENAMED,
            (sid,),
            f"The disk of server {sid} was that of server {former}.",
            (f"{on_a_line(server.place)}: myid is {sid}, and an earlier start in its log has myid {former}",),
            (
                NextStep(StepKind.STOP, (sid,), f"Stop server {sid}."),
                NextStep(
                    StepKind.EDIT,
                    (sid,),
                    f"Give the machine its former id {former} again, in myid and in the `server.N` lines of all files.",
                ),
            ),
            ("Do not let it vote under the new id: its acknowledgements and its accepted epoch belong to the former"
             " one.",),
        )  # fmt: skip


# Files.


def _bad_file(situation: Situation, _: Doubts) -> Iterator[Cause]:
    for server in situation.servers:
        if server.faults:
            yield Cause(
                CauseKind.BAD_FILE,
                () if server.sid is None else (server.sid,),
                f"The configuration of {server.name} cannot be used.",
                server.faults,
                (NextStep(StepKind.EDIT, () if server.sid is None else (server.sid,), "Correct the file as it says."),),
            )


def _old_file(situation: Situation, _: Doubts) -> Iterator[Cause]:
    common = situation.common_view
    if common is None or not situation.deviants:
        return
    for sid in situation.deviants:
        view, origin = situation.views[sid], on_a_line(situation.files[sid].origin)
        if sid not in common.members:
            continue
        pair = situation.disjoint
        danger = (
            f"Servers {listed(pair.a)} and servers {listed(pair.b)} are quorums that share no server: two leaders can"
            " serve."
            if pair is not None
            else "Every two quorums of these files meet."
        )
        yield Cause(
            CauseKind.OLD_FILE,
            (sid,),
            f"Server {sid} has other members in its file than the others.",
            (
                f"{origin}: voters {listed(view.voters)}"
                + (f", observers {listed(view.observers)}" if view.observers else ""),
                f"the others: voters {listed(common.voters)}"
                + (f", observers {listed(common.observers)}" if common.observers else ""),
                danger,
            ),
            (
                NextStep(StepKind.EDIT, (sid,), f"Give server {sid} the file of the others; do not start it yet."),
                NextStep(
                    StepKind.LOOK,
                    (sid,),
                    "Let the planner order the restarts, since some orders lose writes: `python -m checker rollout"
                    " --from BEFORE --to AFTER --now` with the inputs of this diagnosis.",
                ),
            ),
            (f"Do not restart the others with the file of server {sid}.",),
        )


def _swapped_ports(situation: Situation, _: Doubts) -> Iterator[Cause]:
    for sid in sorted(situation.files):
        lines = situation.addresses(sid)
        ports = {owner: {(each.quorum_port, each.election_port) for each in line} for owner, line in lines.items()}
        for owner, pairs in ports.items():
            others = [other for other in ports if other != owner and ports[other] == {(b, a) for a, b in pairs}]
            if others and len(others) >= len(ports) - 1 and pairs != ports[others[0]]:
                quorum_port, election_port = min(pairs)
                yield Cause(
                    CauseKind.SWAPPED_PORTS,
                    (owner,),
                    f"The file of server {owner} has the quorum port and the election port of server {sid} exchanged.",
                    (
                        f"{on_a_line(situation.files[owner].origin)}: server.{sid} has {quorum_port}:{election_port}",
                        f"servers {listed(others)} have {election_port}:{quorum_port}",
                    ),
                    (
                        NextStep(StepKind.EDIT, (owner,), f"Correct server.{sid} in the file of server {owner}."),
                        NextStep(StepKind.RESTART, (owner,), f"Restart server {owner} alone, until it serves."),
                    ),
                    ("Do not restart any other server before that one serves.",),
                )


def _smaller(sides: Mapping[bool, list[Sid]]) -> list[Sid]:
    """The side with fewer servers."""
    return min(sides.values(), key=lambda side: (len(side), side))


def _mixed_tls(situation: Situation, _: Doubts) -> Iterator[Cause]:
    if not situation.strangers:
        return
    pairs = ", ".join(f"{one} and {other}" for one, other in situation.strangers)
    sides: defaultdict[bool, list[Sid]] = defaultdict(list)
    for sid, files in situation.files.items():
        sides[is_true(settings(files), "sslQuorum")].append(sid)
    yield Cause(
        CauseKind.TLS_MIXED,
        tuple(sorted({sid for pair in situation.strangers for sid in pair})),
        "Servers do not talk to each other, because their TLS or SASL keys do not fit.",
        (
            f"no connection between servers {pairs}",
            *(
                f"sslQuorum is {str(value).lower()} at servers {listed(sids)}"
                for value, sids in sorted(sides.items())
                if len(sides) > 1
            ),
        ),
        (
            NextStep(
                StepKind.EDIT,
                tuple(sorted(_smaller(sides))) if len(sides) > 1 else (),
                "Give the smaller side the keys of the others again; a change to TLS goes through `portUnification`"
                " in three roll-outs (`python -m checker rollout` names them).",
            ),
            NextStep(
                StepKind.RESTART,
                tuple(sorted(_smaller(sides))) if len(sides) > 1 else (),
                "Restart these servers, one after the other.",
            ),
        ),
    )


def _mixed_reconfig(situation: Situation, _: Doubts) -> Iterator[Cause]:
    sides: defaultdict[bool, list[Sid]] = defaultdict(list)
    for sid, files in situation.files.items():
        sides[files.config.reconfig_enabled].append(sid)
    if len(sides) < 2 or any(server.answers is not None and server.disk is None for server in situation.servers):
        return
    yield Cause(
        CauseKind.RECONFIG_MIXED,
        tuple(sorted(_smaller(sides))),
        "reconfigEnabled is true at some servers only.",
        tuple(
            f"reconfigEnabled={str(value).lower()} at servers {listed(sids)}" for value, sids in sorted(sides.items())
        ),
        (
            NextStep(
                StepKind.EDIT,
                tuple(sorted(_smaller(sides))),
                "Give all servers the same value, and restart those that change, one after the other.",
            ),
        ),
        ("Do not send `reconfig` before all have the same value.",),
    )


def _pending_view(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """A reconfiguration that is not active everywhere: two versions of the membership that both served."""
    leaders = situation.leaders if len(situation.leaders) > 1 else situation.logged_leaders
    if not _versions_differ(situation) or (len(leaders) < 2 and not doubts.differing):
        return
    versions: defaultdict[int, list[Sid]] = defaultdict(list)
    for sid, files in situation.files.items():
        versions[files.config.version].append(sid)
    newest = versions[max(versions)]
    yield Cause(
        CauseKind.PENDING_VIEW,
        tuple(leaders),
        "A reconfiguration is active at some servers only, and both sides have served (finding E).",
        (
            *(
                f"servers {listed(sids)} have the configuration of version {version:x}"
                for version, sids in sorted(versions.items())
            ),
            *(
                f"the disks of servers {one} and {other} differ from {zxid_text(zxid)} on"
                for (one, other), zxid in sorted(doubts.differing.items())[:1]
            ),
        ),
        (
            NextStep(StepKind.STOP, (), "Stop all clients, so that neither side acknowledges more."),
            NextStep(
                StepKind.RECOVER,
                tuple(sorted(situation.files)),
                "Copy the data directories of all servers, and compare the two sides: `python -m checker recover` with"
                " the copies lists what each side alone has, by path. Decide which side stays.",
            ),
        ),
        (f"Do not restart servers {listed(newest)} with the others before one side is chosen.",),
    )


def _versions_differ(situation: Situation) -> bool:
    """Whether servers run with two versions of a configuration that was changed by `reconfig`."""
    versions = {files.config.version for files in situation.files.values() if files.config.dynamic_config_file}
    return len(versions) > 1


def _next_files(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """A reconfiguration that a server has acknowledged and not activated: `.next` is beside its configuration."""
    pending = [server for server in situation.servers if server.next_view is not None]
    if not pending:
        return
    sids = tuple(sorted(server.sid for server in pending if server.sid is not None))
    lines = tuple(f"{on_a_line(server.next_path)} has a configuration that is not active" for server in pending)
    promoted = {
        sid
        for server in pending
        for view in [server.view if server.view is not None else situation.common_view]
        if server.next_view is not None and view is not None
        for sid in server.next_view.voters & view.observers
    }
    waiting = [server.name for server in situation.looking]
    waiting = waiting or [f"server {sid}" for sid in situation.in_logged_role("LOOKING")]
    leaders = situation.leaders or situation.in_logged_role("LEADING")
    if promoted and leaders and waiting:
        yield Cause(
            CauseKind.PROMOTION_STALLED,
            leaders,
            f"The promotion of server {listed(promoted)} waits for a server that cannot return (finding H).",
            (*lines, f"server {listed(leaders)} leads, and {' and '.join(waiting)} does not serve"),
            (
                NextStep(
                    StepKind.RESTART, situation.leaders, f"Restart the leader, server {listed(situation.leaders)}."
                ),
            ),
            ("Do not delete `.next`: its server has acknowledged the change.",),
        )
        return
    if len(situation.leaders) > 1:
        yield Cause(
            CauseKind.PENDING_VIEW,
            sids,
            "A reconfiguration without a reply is active at some servers and not at others (finding E).",
            lines,
            (),
            ("Do not restart any server before the two sides are compared.",),
        )
        return
    yield Cause(
        CauseKind.STALE_NEXT,
        sids,
        "A reconfiguration was acknowledged, and is not active at its server.",
        lines,
        (
            NextStep(
                StepKind.WAIT,
                sids,
                "Let the server connect to its leader, which tells it whether the change was committed. Compare"
                " `/zookeeper/config` at all servers before any other change.",
            ),
        ),
        ("Do not delete `.next`, and do not start this server a second time before it has connected: the first start"
         " deletes it, and the second has forgotten the change (finding F).",),
    )  # fmt: skip


# Disks.


def _disk_causes(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """The damage of each data directory."""
    for server in situation.servers:
        if server.disk is None or server.disk.is_empty:
            continue
        sids = () if server.sid is None else (server.sid,)
        for kind, sentence, lines in _faults_of(server.disk, server.name):
            steps, never = _without_its_disk(situation, doubts, server)
            yield Cause(kind, sids, sentence, tuple(map(on_a_line, lines)), steps, never)


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
            () if server.sid is None else (server.sid,),
            f"Leave {server.name} stopped, and its files as they are: {reason}.",
        )
        return (look,), (f"Do not erase the disk of {server.name}: {reason}.",)
    assert situation.common_view is not None  # the decision needed it
    others = tuple(sorted(situation.common_view.voters - {server.sid}))
    copy = "Keep the files: they are the only copy of what they have."
    return (
        NextStep(
            StepKind.WAIT,
            others,
            f"Leave server {server.sid} stopped until servers {listed(others)} serve without it: one answers `srvr`"
            " with `Mode: leader`, and a quorum follows it.",
        ),
        NextStep(
            StepKind.ERASE,
            (server.sid,),
            f"Move `version-2` of server {server.sid} to another place, and keep `myid`: {reason}. {copy}",
        ),
        NextStep(StepKind.START, (server.sid,), f"Start server {server.sid}; its leader sends it a whole snapshot."),
    ), (f"Do not start server {server.sid} with an empty disk before the others serve.",)


def _record_stays(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """A server that was told to cut its log back, and has a record behind the cut that others lack."""
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


def _histories(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """Disks with different transactions under one zxid."""
    differing = doubts.differing
    if not differing:
        return
    counts = Counter(sid for pair in differing for sid in pair)
    disks = [sid for sid, server in situation.by_sid.items() if server.disk is not None and not server.disk.is_empty]
    odd = [sid for sid in disks if counts[sid] == len(disks) - 1] if len(disks) > 2 else []
    lines = [
        f"the disks of servers {one} and {other} have different transactions {zxid_text(zxid)}"
        for (one, other), zxid in sorted(differing.items())
    ]
    if len(odd) == 1 and odd[0] in doubts.foreign:
        server = situation.by_sid[odd[0]]
        steps, never = _without_its_disk(situation, doubts, server)
        yield Cause(
            CauseKind.FOREIGN_DISK,
            (odd[0],),
            f"The disk of server {odd[0]} has no transaction that another server has: it is of another ensemble.",
            tuple(lines),
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
        tuple(lines),
        (
            NextStep(
                StepKind.RECOVER,
                tuple(sorted(disks)),
                "Copy the data directories, and compare the sides with `python -m checker recover`: it lists what each"
                " alone has, by path.",
            ),
        ),
        ("Do not let the sides meet before one is chosen: what the other alone has acknowledged is cut off.",),
    )


def _observer_leads(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
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
                    NextStep(
                        StepKind.RECOVER,
                        tuple(sorted(situation.by_sid)),
                        f"If they are no quorum without server {sid}, make new data directories from theirs:"
                        " `python -m checker recover`.",
                    ),
                ),
                (f"Do not let server {sid} take part in an election with them: its epoch is higher, and it wins.",),
            )
            return


def _truncated(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """A server that cut its log back, and whose leader stopped after that."""
    for server in situation.servers:
        log, sids = server.log, () if server.sid is None else (server.sid,)
        cut = log.kinds.get(LogKind.TRUNCATED) if log is not None else None
        if log is None or cut is None or log.kinds[LogKind.ROLE].last.number < cut.last.number:
            continue
        yield Cause(
            CauseKind.TRUNCATED,
            sids,
            f"{capital(server.name)} cut its log back when it came to its leader, and left that leader later. A write"
            " that the leader acknowledged in between can be lost (findings A and B).",
            (on_a_line(log.line(LogKind.TRUNCATED)),),
            (
                NextStep(
                    StepKind.LOOK,
                    sids,
                    "Ask the clients whether a write of that moment is missing; no disk shows it, if it is on none.",
                ),
            ),
        )


def _oracle(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """A server that looks for a leader for ever, since it alone has heard of another configuration."""
    serving = situation.serving or situation.in_logged_role("LEADING", "FOLLOWING", "OBSERVING")
    for server in situation.servers:
        log, view = server.log, server.view
        if log is None or view is None or log.role != "LOOKING" or LogKind.ORACLE not in log.kinds:
            continue
        if server.files is None or not server.files.config.dynamic_config_file:
            continue
        if server.next_view is not None or server.sid is None or not view.contains_quorum({*serving} - {server.sid}):
            continue
        yield Cause(
            CauseKind.STALE_NEXT,
            (server.sid,),
            f"{capital(server.name)} hears of a leader that is followed by a quorum of its configuration, and does not"
            " follow it: it has another configuration in memory, from a `.next` that its start has deleted.",
            (on_a_line(log.line(LogKind.ORACLE)), f"servers {listed(serving)} serve"),
            (NextStep(StepKind.RESTART, (server.sid,), f"Restart {server.name} alone, while the others serve."),),
            ("Do not restart another server before this one serves.",),
        )


def _majority_lost(situation: Situation, _: Doubts) -> Iterator[Cause]:
    view = situation.common_view
    if view is None:
        return
    empty = {
        sid
        for sid, server in situation.by_sid.items()
        if sid in view.voters and server.disk is not None and server.disk.is_empty and sid not in situation.serving
    }
    full = [sid for sid, server in situation.by_sid.items() if server.disk is not None and not server.disk.is_empty]
    if not empty or not full or view.contains_quorum(view.voters - empty):
        return
    yield Cause(
        CauseKind.MAJORITY_LOST,
        tuple(sorted(empty)),
        f"The disks of servers {listed(empty)} are empty, and the rest is no quorum.",
        tuple(f"{on_a_line(situation.by_sid[sid].place)}: no snapshot and no log" for sid in sorted(empty)),
        (
            NextStep(StepKind.STOP, tuple(sorted(empty)), f"Stop servers {listed(empty)}, or leave them stopped."),
            NextStep(
                StepKind.RECOVER,
                tuple(sorted(full)),
                f"Make new data directories from those of servers {listed(full)}: `python -m checker recover` says what"
                " may be lost before it writes.",
            ),
        ),
        ("Do not start the empty servers together: they are a quorum, elect one of themselves, and the others then lose"
         " all data.",),
    )  # fmt: skip


# Machines.


def _logged(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """The causes that the log of a server alone shows."""
    for server in situation.servers:
        log, sids = server.log, () if server.sid is None else (server.sid,)
        if log is None:
            continue
        if LogKind.NO_SPACE in log.kinds:
            yield Cause(
                CauseKind.FULL_DISK,
                sids,
                f"The disk of {server.name} is full.",
                (on_a_line(log.line(LogKind.NO_SPACE)),),
                (
                    NextStep(
                        StepKind.EDIT,
                        sids,
                        f"Make room on the disk of {server.name}: remove snapshots and logs that its newest three whole"
                        " snapshots do not need (`zkCleanup.sh`), or other files.",
                    ),
                    NextStep(StepKind.START, sids, f"Start {server.name}, and wait until it serves."),
                ),
                ("Do not remove the newest snapshot, nor a log behind it.",),
            )
        if LogKind.RESTORED in log.kinds:
            yield Cause(
                CauseKind.RESTORE_UNDONE,
                sids,
                f"The data of {server.name} was restored by the AdminServer, which keeps the restored data in memory"
                " alone (finding I).",
                (on_a_line(log.line(LogKind.RESTORED)),),
                (
                    NextStep(
                        StepKind.LOOK,
                        (),
                        "Compare the znodes of all servers with the backup: once the leader of then has stopped,"
                        " the data is that of before. If it is undone, restore again, and restart each server"
                        " once, the leader last, before clients write.",
                    ),
                ),
                ("Do not compare `Zxid` values: after a restore servers with equal ones can have different data.",),
            )
        created = log.kinds.get(LogKind.EPOCH_CREATED)
        if created is not None and created.last.values["epoch"] != "0":
            steps, never = _without_its_disk(situation, _, server)
            yield Cause(
                CauseKind.EPOCH_MISSING,
                sids,
                f"{capital(server.name)} has lost an epoch that it had promised.",
                (on_a_line(log.line(LogKind.EPOCH_CREATED)),),
                steps,
                never,
            )


def _unresolvable(situation: Situation, _: Doubts) -> Iterator[Cause]:
    for server in situation.servers:
        if isinstance(server.live, NoAnswerError) and server.live.silence is Silence.UNKNOWN_HOST:
            yield Cause(
                CauseKind.UNRESOLVABLE_HOST,
                () if server.sid is None else (server.sid,),
                f"The host name of {server.name} is unknown on this machine.",
                (on_a_line(str(server.live.problems[0].what)) + f": {on_a_line(server.live.problems[0].file)}",),
                (NextStep(StepKind.LOOK, (), "Correct the name, or ask from a machine that knows it."),),
            )
    for host, owners in sorted(_unknown_hosts(situation).items()):
        sids = tuple(
            sid
            for sid in sorted(situation.common_view.members if situation.common_view is not None else situation.files)
            if any(address.host == host for line in situation.addresses(sid).values() for address in line)
        )
        yield Cause(
            CauseKind.UNRESOLVABLE_HOST,
            sids,
            f"The host name {on_a_line(host)} is unknown to servers {listed(owners)}.",
            tuple(
                on_a_line(log.line(LogKind.UNKNOWN_HOST))
                for owner in owners
                if (log := situation.by_sid[owner].log) is not None
            ),
            (
                NextStep(
                    StepKind.EDIT,
                    owners,
                    f"Make {on_a_line(host)} known to the machines of servers {listed(owners)} (DNS, hosts file), or"
                    " correct it in their files. A release from 3.5 on looks it up again by itself.",
                ),
            ),
            ("Do not give the address to another server: its id votes.",),
        )


def _unknown_hosts(situation: Situation) -> Mapping[str, tuple[Sid, ...]]:
    """The hosts of members that servers could not look up, by their logs."""
    hosts: defaultdict[str, list[Sid]] = defaultdict(list)
    for sid, server in sorted(situation.by_sid.items()):
        for host in server.log.hosts if server.log is not None else ():
            hosts[host].append(sid)
    return {host: tuple(owners) for host, owners in hosts.items()}


def _no_quorum(situation: Situation, _: Doubts) -> Iterator[Cause]:
    if not situation.was_asked and situation.without_quorum:
        lost = tuple(sorted(situation.without_quorum))
        yield Cause(
            CauseKind.NO_QUORUM,
            lost,
            f"No quorum runs, by the logs: servers {listed(lost)} are not reached.",
            tuple(
                on_a_line(server.log.line(LogKind.REFUSED))
                for server in situation.servers
                if server.log is not None and server.log.role == "LOOKING"
            ),
            (NextStep(StepKind.START, lost, f"Start servers {listed(lost)}; their disks stay as they are."),),
            ("Do not make the running servers an ensemble of their own before the others are lost for good.",),
        )
        return
    if situation.has_quorum is not False or len(situation.leaders) > 1:
        return
    view = situation.common_view
    silent = sorted(server.sid for server in situation.silent if server.sid is not None)
    looking = sorted(server.sid for server in situation.looking if server.sid is not None)
    running = {sid for sid, server in situation.by_sid.items() if server.live is not None and sid not in silent}
    if view is None or view.contains_quorum(running):
        return
    yield Cause(
        CauseKind.NO_QUORUM,
        tuple(silent),
        f"No quorum runs: of the voters {listed(view.voters)}, {listed(silent) or 'none'} give no answer.",
        (
            *(f"{server.name}: {on_a_line(server.live.problems[0].what)}" for server in situation.silent
              if isinstance(server.live, NoAnswerError)),
            *([f"servers {listed(looking)} run and look for a leader"] if looking else []),
        ),
        (NextStep(StepKind.START, tuple(silent), f"Start servers {listed(silent)}; their disks stay as they are."),),
        ("Do not make the running servers an ensemble of their own before the others are lost for good.",),
    )  # fmt: skip


CAUSES: tuple[Callable[[Situation, Doubts], Iterator[Cause]], ...] = (
    _two_leaders,
    _wrong_myid,
    _ids_renamed,
    _bad_file,
    _old_file,
    _swapped_ports,
    _mixed_tls,
    _mixed_reconfig,
    _pending_view,
    _next_files,
    _disk_causes,
    _logged,
    _record_stays,
    _histories,
    _observer_leads,
    _oracle,
    _majority_lost,
    _unresolvable,
    _no_quorum,
    _truncated,
)
