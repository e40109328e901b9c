"""The answer of a diagnosis as text and as data.

Rules of this module:

- Text and data are made from one `Diagnosis`. No text of an input reaches the terminal unescaped.
- Each unanswered question has the input that would answer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from checker.command import ExitCode
from checker.diagnose.cause import Cause, NextStep
from checker.diagnose.causes import causes
from checker.diagnose.doubt import Doubts, WriteFate, doubts, sides_text
from checker.diagnose.evidence import ServerEvidence, evidence
from checker.diagnose.explored import StepsExplored, explored, warning
from checker.diagnose.situation import SERVING, Situation, listed, members_of, servers_text
from checker.printable import capital
from checker.rollout.inputs.live import FIGURES
from spec.quorum import Sid
from spec.text import on_a_line
from spec.txn import zxid_text

MOST_SEEN = 12
"""The largest number of findings without a cause in the text."""


@dataclass(frozen=True)
class Diagnosis:
    """A diagnosis: the situation, the transactions in doubt, and the causes, the one to mend first at the beginning."""

    situation: Situation
    doubts: Doubts
    causes: tuple[Cause, ...]
    explored: StepsExplored | None = None

    @property
    def exit_code(self) -> ExitCode:
        """0: all that was asked serves with a quorum, and no cause was found; 1: a cause is named; 20: not known."""
        if self.causes:
            return ExitCode.UNEXPECTED
        return ExitCode.INCOMPLETE if self.outside or not self.situation.has_one_quorum else ExitCode.PASSED

    @property
    def outside(self) -> tuple[ServerEvidence, ...]:
        """The servers that were asked, and whose answer is not that they serve."""
        servers = self.situation.servers
        return tuple(server for server in servers if server.live is not None and server.mode not in SERVING)


def diagnose(inputs: Iterable[str], owners: Mapping[str, Sid] | None = None) -> Diagnosis:
    """Diagnose an ensemble from folders, files and addresses; `owners` are the servers of addresses (HOST:PORT).

    Raises ConfigError for any other input.
    """
    situation = Situation(evidence(inputs, owners))
    doubtful = doubts(situation)
    named = causes(situation, doubtful)
    steps = tuple(first_steps(named))
    outcome = explored(situation, doubtful, steps)
    if outcome is not None and outcome.unsafe_leaders:
        first = named[0].kind
        warned = replace(named[0], steps=(warning(outcome, steps),))
        named = (warned, *(replace(cause, steps=()) if cause.kind is first else cause for cause in named[1:]))
    return Diagnosis(situation, doubtful, named, outcome)


def state(diagnosis: Diagnosis) -> Iterator[str]:
    """The sentences about the state: who serves, and whether data differ."""
    situation = diagnosis.situation
    yield _service(situation)
    for server in situation.unclear:
        yield on_a_line(str(server.live))
    for server in filter(_restarts_otherwise, situation.servers):
        assert server.running is not None and server.files is not None  # the filter has seen them
        yield (
            f"{capital(server.name)} runs with the voters {listed(server.running.view.voters)}, and its file has"
            f" {listed(server.files.view.voters)}."
        )
    disks = [(sid, server.disk) for sid, server in sorted(situation.by_sid.items()) if server.disk is not None]
    if disks:
        ends = ", ".join(
            f"server {sid} {zxid_text(disk.last_zxid) if not disk.is_empty else 'empty'}" for sid, disk in disks
        )
        differing = diagnosis.doubts.differing
        yield f"The disks end with: {ends}; " + (
            f"histories differ: {sides_text(differing)}." if differing else "no history differs."
        )


def _service(situation: Situation) -> str:
    if not situation.was_asked:
        return "No address was given, so nothing is known of running servers."
    followers = [sid for sid in situation.serving if sid not in situation.leaders]
    leaders = [
        f"server {sid} leads"
        + (f" by its file (voters {listed(situation.views[sid].voters)})" if sid in situation.views else "")
        + _synced(situation.by_sid[sid])
        for sid in situation.leaders
    ]
    parts = leaders or ["no server leads"]
    if followers:
        parts.append(f"{listed(followers)} {'follows' if len(followers) == 1 else 'follow'}")
    parts += [f"{server.name} runs and does not serve" for server in situation.looking]
    parts += [f"{server.name} gives no answer" for server in situation.silent]
    parts += [
        f"server {sid} answers `{server.mode}`"
        for sid, server in sorted(situation.by_sid.items())
        if server.answers is not None and sid not in situation.serving
    ]
    parts += [
        f"server {follower} names {leader} as its leader"
        for follower, leader in situation.followed.items()
        if leader not in situation.leaders
    ]
    quorum = {True: "There is a quorum.", False: "There is no quorum.", None: "Whether there is a quorum is not known."}
    several = "More than one leader may have a quorum."
    verdict = several if len(situation.leaders) > 1 else quorum[situation.has_one_quorum]
    return f"{capital(', '.join(parts))}. {verdict}"


def _synced(leader: ServerEvidence) -> str:
    """The number of voters that follow a leader, if it states that."""
    number = None if leader.answers is None else leader.answers.figures.get("synced_followers")
    return "" if number is None else f" with {number} synchronised follower{'s' * (number != 1)}"


def _restarts_otherwise(server: ServerEvidence) -> bool:
    """Whether a server runs with other members than those of its file."""
    running, files = server.running, server.files
    return running is not None and files is not None and members_of(running.view) != members_of(files.view)


def missing(diagnosis: Diagnosis) -> Iterator[str]:
    """The missing inputs that would answer more."""
    situation = diagnosis.situation
    view = situation.common_view
    if view is None:
        yield (
            "the zoo.cfg files of all servers: they say who votes"
            if len(situation.views) < 2
            else ("which configuration is right: the servers do not agree on it")
        )
    sids = view.voters if view is not None else frozenset(situation.by_sid)
    without = [sid for sid in sorted(sids) if sid not in situation.by_sid or situation.by_sid[sid].disk is None]
    if without:
        yield f"the data directories of {servers_text(without)}"
    yield from (on_a_line(server.unread) for server in situation.servers if server.unread)
    if not situation.was_asked:
        yield "the client addresses (HOST:PORT,...): they say which servers run"
    if all(server.log is None for server in situation.servers):
        yield "the logs of the servers"
    yield from (server.log.fault for server in situation.servers if server.log is not None and server.log.fault)


def also_seen(diagnosis: Diagnosis) -> Iterator[str]:
    """The findings in logs and answers that no cause has as evidence."""
    cited = {line for cause in diagnosis.causes for line in cause.evidence}
    for server in diagnosis.situation.servers:
        lines = [] if server.log is None else [on_a_line(server.log.line(kind)) for kind in server.log.findings]
        yield from (line for line in lines if line not in cited)
        for key, number in server.answers.figures.items() if server.answers is not None else ():
            if number and key.endswith("_count"):
                yield f"{server.name}, by its answer since its start: {FIGURES[key]} ({number})"


def text_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """The answer as text."""
    yield from map(on_a_line, state(diagnosis))
    yield ""
    yield "What can be lost"
    yield from _loss(diagnosis.doubts)
    yield ""
    yield "Why"
    if not diagnosis.causes:
        yield "  No cause was found in this evidence."
    for cause in diagnosis.causes:
        yield f"  {cause.kind}: {on_a_line(cause.sentence)}"
        yield from (f"    {on_a_line(line)}" for line in cause.evidence)
    if lines := list(also_seen(diagnosis)):
        yield "  Also seen:"
        yield from (f"    {line}" for line in lines[:MOST_SEEN])
        if len(lines) > MOST_SEEN:
            yield f"    and {len(lines) - MOST_SEEN} more"
    yield ""
    yield "What to do"
    steps = tuple(first_steps(diagnosis.causes))
    for number, step in enumerate(steps, start=1):
        yield f"  {number}. {on_a_line(step.sentence)}"
        yield from (f"       {on_a_line(line)}" for edit in step.edits for line in edit.lines)
    if not steps:
        yield from _without_steps(diagnosis)
    if diagnosis.explored is not None:
        yield f"  {on_a_line(diagnosis.explored.sentence)}"
    if (later := len({cause.kind for cause in diagnosis.causes}) - 1) > 0:
        yield f"  Then run the diagnosis again: {later} more {'cause is' if later == 1 else 'causes are'} named above."
    for sentence in dict.fromkeys(line for cause in diagnosis.causes for line in cause.never):
        yield f"  {on_a_line(sentence)}"
    if unknown := list(missing(diagnosis)):
        yield ""
        yield f"Not given: {'; '.join(unknown)}."


def _without_steps(diagnosis: Diagnosis) -> Iterator[str]:
    """The sentences where no cause gives a step: nothing to do, or the inputs to ask again with."""
    situation, outside = diagnosis.situation, diagnosis.outside
    if situation.has_one_quorum and not outside:
        yield "  Nothing, by this evidence."
        return
    names = on_a_line(", ".join(server.name for server in outside) or "each server")
    yield f"  Not known yet. Erase nothing. Ask again with a folder of {names}: zoo.cfg, data directory, log."


def first_steps(named: Iterable[Cause]) -> Iterator[NextStep]:
    """The steps of the first cause, and of those of the same kind: one fault may be at several servers."""
    kind = None
    for cause in named:
        kind = kind or cause.kind
        if cause.kind is kind:
            yield from cause.steps


def _loss(answer: Doubts) -> Iterator[str]:
    if answer.unanswered:
        yield f"  Not known: {answer.unanswered}."
    elif not (answer.groups or answer.unseen):
        yield "  Nothing: every transaction is on all of these disks, and every quorum has one of them."
    elif not answer.unseen and all(doubt.fate is WriteFate.KEPT for doubt in answer.groups):
        yield "  Nothing, while the disks stay as they are. Some disks lack transactions that every election keeps:"
    for missing in answer.unseen:
        number = "any number of" if missing.count is None else str(missing.count)
        end = "" if missing.before is None else f" and before {zxid_text(missing.before)}"
        yield (
            f"  {number} transactions behind {zxid_text(missing.after)}{end}, which are on none of these disks: servers"
            " whose disk is empty, damaged or not given can be a quorum, and may have acknowledged them"
        )
    for doubt in answer.groups:
        yield f"  {on_a_line(doubt.sentence)}"


def data(diagnosis: Diagnosis) -> dict[str, Any]:
    """The answer as data: `steps` are those of the first cause, each with one server."""
    return {
        "state": list(state(diagnosis)),
        "quorum": diagnosis.situation.has_one_quorum,
        "leaders": list(diagnosis.situation.leaders),
        "doubt": [
            {
                "first": zxid_text(doubt.first),
                "last": zxid_text(doubt.last),
                "count": doubt.count,
                "having": doubt.having,
                "lacking": doubt.lacking,
                "unknown": doubt.unknown,
                "fate": doubt.fate.name.lower(),
                "changes": doubt.changes,
            }
            for doubt in diagnosis.doubts.groups
        ],
        "unseen": [
            {
                "after": zxid_text(missing.after),
                "before": None if missing.before is None else zxid_text(missing.before),
                "count": missing.count,
            }
            for missing in diagnosis.doubts.unseen
        ],
        "unanswered": diagnosis.doubts.unanswered or None,
        "causes": [
            {
                "name": cause.kind.value,
                "servers": cause.servers,
                "sentence": cause.sentence,
                "evidence": cause.evidence,
                "steps": [_step(step) for step in cause.steps],
                "never": cause.never,
            }
            for cause in diagnosis.causes
        ],
        "seen": list(also_seen(diagnosis)),
        "steps": [_step(step) for step in first_steps(diagnosis.causes)],
        "explored": None if diagnosis.explored is None else asdict(diagnosis.explored),
        "missing": list(missing(diagnosis)),
    }


def _step(step: NextStep) -> dict[str, Any]:
    return {
        "action": step.kind.value,
        "servers": step.servers,
        "sentence": step.sentence,
        "command": step.command or None,
        "edits": [edit.data for edit in step.edits],
    }


def servers_read(servers: Iterable[ServerEvidence]) -> Iterator[str]:
    """A sentence for each place with the kinds of its evidence."""
    for server in servers:
        parts = [
            *(["zoo.cfg"] if server.files is not None else []),
            *(["data"] if server.disk is not None else []),
            *(["log"] if server.log is not None else []),
            *(["its answers"] if server.answers is not None else []),
        ]
        yield f"{on_a_line(server.place)}: {capital(server.name)}; {', '.join(parts) or 'nothing that can be used'}"
