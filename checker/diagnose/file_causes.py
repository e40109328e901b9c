"""The causes that files, ids and host names show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from checker.command_table import called
from checker.diagnose.cause import Cause, CauseKind, NextStep, StepKind, check
from checker.diagnose.doubt import Doubts
from checker.diagnose.edits import FileEdit, edited, key_edits, member_edits, myid_edits, port_edits
from checker.diagnose.evidence import ServerEvidence
from checker.diagnose.messages import LogKind
from checker.diagnose.situation import Situation, listed, members_of, servers_text
from checker.rollout.files.keys import strangers
from checker.rollout.inputs.folders import ServerFiles, settings
from checker.rollout.inputs.live import NoAnswerError, Silence
from spec.config.problems import is_true
from spec.quorum import Sid
from spec.text import on_a_line


def wrong_myid(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """An id of two data directories, or of no member of the configuration."""
    places: defaultdict[Sid, list[ServerEvidence]] = defaultdict(list)
    for server in situation.servers:
        if server.disk is not None and server.disk.myid.value is not None:
            places[server.disk.myid.value].append(server)
    for sid, servers in sorted(places.items()):
        if len(servers) > 1:
            folders = [on_a_line(server.place) for server in servers]
            yield Cause(
                CauseKind.WRONG_MYID,
                (sid,),
                f"{len(folders)} data directories have the id {sid}.",
                tuple(f"{folder}: myid is {sid}" for folder in folders),
                (
                    NextStep(StepKind.STOP, (sid,), f"Stop the servers of {' and '.join(folders)}."),
                    NextStep(
                        StepKind.EDIT,
                        (sid,),
                        "Write into each myid the number of the `server.N` line with the address of its machine. If one"
                        " of the directories is a copy of the other, start it empty, with its own myid alone.",
                        edits=tuple(edit for server in servers for edit in _former_id(situation, server)),
                    ),
                    NextStep(
                        StepKind.START,
                        (sid,),
                        f"Start them one after the other, that with id {sid} first; go on when the last one serves.",
                    ),
                    check((sid,), "each of them serves under its own id"),
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
                    f" server is new, add `server.{myid}` by a roll-out that is checked (`{called('rollout')}`).",
                    edits=_former_id(situation, server),
                ),
                NextStep(StepKind.START, (myid,), f"Start the server of {on_a_line(server.place)} with that id."),
                check((myid,), "it serves under that id"),
            ),
            ("Do not take the id of a server that has run elsewhere: what it has acknowledged is not on this disk.",),
        )


def _former_id(situation: Situation, server: ServerEvidence) -> tuple[FileEdit, ...]:
    """The edit that gives a server the id of its earlier starts, if a member has that id, and no other disk has it."""
    former, view = server.log.former_sid if server.log is not None else None, server.view or situation.common_view
    if former is None or view is None or former not in view.members or former in situation.by_sid:
        return ()
    return myid_edits(server, former)


def ids_renamed(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """Disks whose servers had other ids before."""
    former = {
        server.disk.myid.value: (server, server.log.former_sid)
        for server in situation.servers
        if server.disk is not None and server.disk.myid.value is not None
        if server.log is not None and server.log.former_sid not in (None, server.disk.myid.value)
    }
    ids = [sid for _, sid in former.values() if sid is not None]
    if not former:
        return
    sids = tuple(sorted(former))
    edits: list[FileEdit] = []
    kept = {files.text: files for sid, files in situation.files.items() if sid not in former}
    if len(set(ids)) == len(ids) and not set(ids) & (situation.by_sid.keys() - former.keys()):
        for server, sid in former.values():
            edits += myid_edits(server, sid) if sid is not None else ()
            if server.files is not None and len({files.config.servers for files in kept.values()}) == 1:
                edits += member_edits(server.files, next(iter(kept.values())))
    names = ", ".join(f"{on_a_line(former[sid][0].place)} as server {former[sid][1]}" for sid in sids)
    yield Cause(
        CauseKind.IDS_RENAMED,
        sids,
        "; ".join(f"The disk of server {sid} was that of server {former[sid][1]}" for sid in sids) + ".",
        tuple(
            f"{on_a_line(server.place)}: myid is {sid}, and an earlier start in its log has myid {before}"
            for sid, (server, before) in sorted(former.items())
        ),
        (
            NextStep(StepKind.STOP, sids, f"Stop {servers_text(sids)}."),
            NextStep(
                StepKind.EDIT,
                sids,
                f"Give the machines their former ids again, in myid and in the `server.N` lines of all files: {names}.",
                edits=tuple(edits),
            ),
            NextStep(StepKind.START, sids, "Start them one after the other, and go on when the last one serves."),
            check(sids, "each of them serves under its former id"),
        ),
        ("Do not let them vote under the ids that are in myid now: their acknowledgements and accepted epochs belong to"
         " the former ones.",),
    )  # fmt: skip


def bad_files(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """A configuration that cannot be used."""
    for server in situation.servers:
        if server.faults:
            yield Cause(
                CauseKind.BAD_FILE,
                server.sids,
                f"The configuration of {server.name} cannot be used.",
                server.faults,
                (
                    NextStep(StepKind.EDIT, server.sids, "Correct the file as it says."),
                    NextStep(StepKind.START, server.sids, f"Start {server.name}, if it has ended at this file."),
                    check(server.sids, f"{server.name} serves"),
                ),
            )


def old_files(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """A server whose file names other members than those of the others."""
    common = situation.common_view
    if common is None or not situation.deviants:
        return
    for sid in situation.deviants:
        server, view = situation.by_sid[sid], situation.views[sid]
        if sid not in common.members or server.files is None:
            continue
        runs = server.running is not None and members_of(server.running.view) != members_of(server.files.view)
        origin = "its answer" if runs else on_a_line(server.files.origin)
        alike = (one for one, seen in situation.views.items() if members_of(seen) == members_of(common))
        model = next((one for one in alike if one in situation.files), None)
        has_others = "runs with other members than" if runs else "has other members in its file than"
        pair = situation.disjoint
        danger = (
            f"{servers_text(pair.a)} and {servers_text(pair.b)} can be two quorums by these files, with two leaders."
            if pair is not None
            else "Every two quorums of these files meet."
        )
        yield Cause(
            CauseKind.OLD_FILE,
            (sid,),
            f"Server {sid} {has_others} the others.",
            (
                f"{origin}: voters {listed(view.voters)}"
                + (f", observers {listed(view.observers)}" if view.observers else ""),
                f"the others: voters {listed(common.voters)}"
                + (f", observers {listed(common.observers)}" if common.observers else ""),
                danger,
            ),
            (
                NextStep(
                    StepKind.EDIT,
                    (sid,),
                    f"Give server {sid} the file of the others; do not start it yet.",
                    edits=member_edits(server.files, situation.files[model]) if model is not None else (),
                ),
                NextStep(
                    StepKind.LOOK,
                    (sid,),
                    f"Let the planner order the restarts, since some orders lose writes: `{called('rollout')}"
                    " --from BEFORE --to AFTER --now` with the inputs of this diagnosis.",
                ),
            ),
            (f"Do not restart the others with the file of server {sid}.",),
        )


def swapped_ports(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """A file with the two peer ports of a server exchanged."""
    for sid in sorted(situation.files):
        lines = situation.addresses(sid)
        ports = {
            owner: {(address.quorum_port, address.election_port) for address in line} for owner, line in lines.items()
        }
        for owner, pairs in ports.items():
            owners = [other for other in ports if other != owner and ports[other] == {(b, a) for a, b in pairs}]
            if owners and len(owners) >= len(ports) - 1 and pairs != ports[owners[0]]:
                quorum_port, election_port = min(pairs)
                yield Cause(
                    CauseKind.SWAPPED_PORTS,
                    (owner,),
                    f"The file of server {owner} has the quorum port and the election port of server {sid} exchanged.",
                    (
                        f"{on_a_line(situation.files[owner].origin)}: server.{sid} has {quorum_port}:{election_port}",
                        f"servers {listed(owners)} have {election_port}:{quorum_port}",
                    ),
                    (
                        NextStep(
                            StepKind.EDIT,
                            (owner,),
                            f"Correct server.{sid} in the file of server {owner}.",
                            edits=port_edits(situation.files[owner], sid),
                        ),
                        NextStep(StepKind.RESTART, (owner,), f"Restart server {owner} alone, until it serves."),
                        check((owner,)),
                    ),
                    ("Do not restart any other server before that one serves.",),
                )


def _sides(situation: Situation, value: Callable[[ServerFiles], bool]) -> Mapping[bool, list[Sid]]:
    """The servers by a value in their files."""
    sides: defaultdict[bool, list[Sid]] = defaultdict(list)
    for sid, files in situation.files.items():
        sides[value(files)].append(sid)
    return sides


def _smaller(sides: Mapping[bool, list[Sid]]) -> tuple[Sid, ...]:
    """The side with fewer servers."""
    return min((tuple(side) for side in sides.values()), key=lambda side: (len(side), side))


def mixed_tls(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """Servers whose TLS or SASL keys do not fit."""
    if not situation.strangers:
        return
    pairs = ", ".join(f"{one} and {other}" for one, other in situation.strangers)
    sides = _sides(situation, lambda files: is_true(settings(files), "sslQuorum"))
    strange = tuple(sorted({sid for pair in situation.strangers for sid in pair}))
    smaller = _smaller(sides) if len(sides) > 1 else strange
    yield Cause(
        CauseKind.TLS_MIXED,
        strange,
        "Servers do not talk to each other, because their TLS or SASL keys do not fit.",
        (
            f"no connection between servers {pairs}",
            *(
                f"sslQuorum is {str(value).lower()} at {servers_text(sids)}"
                for value, sids in sorted(sides.items())
                if len(sides) > 1
            ),
        ),
        (
            NextStep(
                StepKind.EDIT,
                smaller,
                "Give the smaller side the keys of the others again; a change to TLS goes through `portUnification`"
                f" in three roll-outs (`{called('rollout')}` names them).",
                edits=_tls_edits(situation, smaller, sides),
            ),
            NextStep(
                StepKind.RESTART,
                smaller,
                f"Restart {servers_text(smaller)}{', one after the other' if len(smaller) > 1 else ''}.",
            ),
            check(smaller),
        ),
    )


def _tls_edits(situation: Situation, smaller: tuple[Sid, ...], sides: Mapping[bool, list[Sid]]) -> tuple[FileEdit, ...]:
    """`sslQuorum` as the larger side has it, if all servers talk to each other then."""
    value = str(next((value for value, sids in sides.items() if tuple(sids) != smaller), False)).lower()
    changed, edits = dict(situation.files), list[FileEdit]()
    for sid in smaller:
        for edit in key_edits(changed[sid], "sslQuorum", value):
            edits.append(edit)
            changed[sid] = edited(changed[sid], edit.after) or changed[sid]
    return () if strangers(changed, changed) else tuple(edits)


def mixed_reconfig(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """`reconfigEnabled` at some servers only."""
    sides = _sides(situation, lambda files: files.config.reconfig_enabled)
    if len(sides) < 2 or any(server.answers is not None and server.disk is None for server in situation.servers):
        return
    smaller = _smaller(sides)
    value = next(value for value, sids in sides.items() if tuple(sids) != smaller)
    yield Cause(
        CauseKind.RECONFIG_MIXED,
        smaller,
        "reconfigEnabled is true at some servers only.",
        tuple(f"reconfigEnabled={str(value).lower()} at {servers_text(sids)}" for value, sids in sorted(sides.items())),
        (
            NextStep(
                StepKind.EDIT,
                smaller,
                f"Write reconfigEnabled={str(value).lower()} into the files of {servers_text(smaller)}, as the others"
                " have it.",
                edits=tuple(
                    edit
                    for sid in smaller
                    for edit in key_edits(situation.files[sid], "reconfigEnabled", str(value).lower())
                ),
            ),
            NextStep(
                StepKind.RESTART,
                smaller,
                f"Restart {servers_text(smaller)}, one after the other; a leader is the last.",
            ),
            check(smaller),
        ),
        ("Do not send `reconfig` before all have the same value.",),
    )


def unresolvable_hosts(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """A host name that this machine, or a server by its log, does not know."""
    for server in situation.servers:
        if isinstance(server.live, NoAnswerError) and server.live.silence is Silence.UNKNOWN_HOST:
            yield Cause(
                CauseKind.UNRESOLVABLE_HOST,
                server.sids,
                f"The host name of {server.name} is unknown on this machine.",
                (on_a_line(str(server.live.problems[0].what)) + f": {on_a_line(server.live.address)}",),
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
            f"The host name {on_a_line(host)} is unknown to {servers_text(owners)}.",
            tuple(
                on_a_line(log.line(LogKind.UNKNOWN_HOST))
                for owner in owners
                if (log := situation.by_sid[owner].log) is not None
            ),
            (
                NextStep(
                    StepKind.EDIT,
                    owners,
                    f"Make {on_a_line(host)} known to the machines of {servers_text(owners)} (DNS, hosts file), or"
                    " correct it in their files. A release from 3.5 on looks it up again by itself.",
                ),
                NextStep(StepKind.START, sids, f"Start {servers_text(sids)}, if it has ended without its own address."),
                check(sids),
            )[: 3 if sids else 1],
            ("Do not give the address to another server: its id votes.",),
        )


def _unknown_hosts(situation: Situation) -> Mapping[str, tuple[Sid, ...]]:
    """The hosts of members that servers could not look up, by their logs."""
    hosts: defaultdict[str, list[Sid]] = defaultdict(list)
    for sid, server in sorted(situation.by_sid.items()):
        for host in server.log.hosts if server.log is not None else ():
            hosts[host].append(sid)
    return {host: tuple(owners) for host, owners in hosts.items()}
