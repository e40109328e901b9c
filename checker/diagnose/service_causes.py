"""The causes that running servers show: two leaders, or no quorum."""

from __future__ import annotations

from collections.abc import Iterator

from checker.diagnose.cause import Cause, CauseKind, NextStep, StepKind, check, compare_sides
from checker.diagnose.doubt import Doubts, sides_text
from checker.diagnose.messages import LogKind
from checker.diagnose.situation import Situation, listed, servers_text
from checker.rollout.inputs.live import NoAnswerError
from spec.quorum import Sid
from spec.text import on_a_line


def two_leaders(situation: Situation, doubts: Doubts) -> Iterator[Cause]:
    """Servers that lead at one time, unless a change of members explains it."""
    leaders = situation.leaders_at_once
    if len(leaders) < 2 or situation.versions_differ:
        return
    how = "answers as leader" if leaders == situation.leaders else "leads by its log"
    lines = [
        f"server {sid} {how}, and by its configuration {listed(situation.views[sid].voters)} vote"
        for sid in leaders
        if sid in situation.views
    ]
    if doubts.differing:
        lines.append(f"the disks differ: {sides_text(doubts.differing)}")
    elif (pair := situation.disjoint) is not None:
        lines.append(f"by these configurations {servers_text(pair.a)} and {servers_text(pair.b)} can be two quorums")
    yield Cause(
        CauseKind.TWO_LEADERS,
        leaders,
        f"Servers {listed(leaders)} lead at the same time, and each may answer clients.",
        tuple(lines),
        compare_sides(situation),
        (
            "Do not restart a server with another file, and do not let the two sides meet: the side with the older"
            " epoch is cut back, and what it alone has acknowledged is lost.",
        ),
    )


def no_quorum(situation: Situation, _: Doubts) -> Iterator[Cause]:
    """Too few running servers, by their answers or else by the logs."""
    if not situation.was_asked and situation.without_quorum:
        lost = tuple(sorted(situation.without_quorum))
        lines = tuple(
            on_a_line(server.log.line(LogKind.REFUSED))
            for server in situation.servers
            if server.log is not None and server.log.role == "LOOKING"
        )
        yield _stopped(lost, f"No quorum runs, by the logs: servers {listed(lost)} are not reached.", lines)
        return
    view = situation.common_view
    if view is None or situation.has_one_quorum is not False:
        return
    silent = tuple(sorted(sid for server in situation.silent for sid in server.sids))
    looking = sorted(sid for server in situation.looking for sid in server.sids)
    running = {sid for sid, server in situation.by_sid.items() if server.live is not None and sid not in silent}
    if view.contains_quorum(running):
        return
    faults = [
        f"{server.name}: {on_a_line(server.live.problems[0].what)}"
        for server in situation.silent
        if isinstance(server.live, NoAnswerError)
    ]
    sentence = f"No quorum runs: no answer from {servers_text(silent)}. The voters are {listed(view.voters)}."
    seeking = [f"a leader is sought by {servers_text(looking)}"] if looking else []
    yield _stopped(silent, sentence, (*faults, *seeking))


def _stopped(servers: tuple[Sid, ...], sentence: str, lines: tuple[str, ...]) -> Cause:
    """The cause that these servers do not run."""
    return Cause(
        CauseKind.NO_QUORUM,
        servers,
        sentence,
        lines,
        (
            NextStep(StepKind.START, servers, f"Start {servers_text(servers)}; their disks stay as they are."),
            check(servers),
        ),
        ("Do not make the running servers an ensemble of their own before the others are lost for good.",),
    )
