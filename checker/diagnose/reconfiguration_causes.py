"""The causes that a change of members leaves: configurations that are active at some servers only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from checker.diagnose.cause import Cause, CauseKind, NextStep, StepKind, check, compare_sides
from checker.diagnose.doubt import Doubts, sides_text
from checker.diagnose.messages import LogKind
from checker.diagnose.situation import Situation, listed, servers_text
from checker.printable import capital
from spec.quorum import Sid
from spec.text import on_a_line


def pending_views(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """A reconfiguration that is not active everywhere: two versions of the membership that both served."""
    leaders = situation.leaders_at_once
    if not situation.versions_differ or (len(leaders) < 2 and not doubts.differing):
        return
    versions: defaultdict[int, list[Sid]] = defaultdict(list)
    for sid, files in situation.files.items():
        versions[files.config.version].append(sid)
    newest = versions[max(versions)]
    yield Cause(
        CauseKind.PENDING_VIEW,
        leaders,
        "A reconfiguration is active at some servers only, and both sides have served (finding E).",
        (
            *(
                f"servers {listed(sids)} have the configuration of version {version:x}"
                for version, sids in sorted(versions.items())
            ),
            *([f"the disks differ: {sides_text(doubts.differing)}"] if doubts.differing else []),
        ),
        compare_sides(situation),
        (f"Do not restart {servers_text(newest)} with the others before one side is chosen.",),
    )


def next_files(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """A server that has acknowledged a reconfiguration, and has not activated it: `.next` is on its disk."""
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
            f"The promotion of {servers_text(promoted)} waits for a server that cannot return (finding H).",
            (*lines, f"{servers_text(leaders)} leads, and {' and '.join(waiting)} does not serve"),
            (
                NextStep(StepKind.RESTART, leaders, f"Restart the leader, {servers_text(leaders)}."),
                check(tuple(sorted(situation.files)) or leaders),
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


def forgotten_next_files(situation: Situation, _: Doubts) -> Iterator[Cause]:
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
            (
                NextStep(StepKind.RESTART, (server.sid,), f"Restart {server.name} alone, while the others serve."),
                check((server.sid,)),
            ),
            ("Do not restart another server before this one serves.",),
        )
