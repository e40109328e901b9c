"""The answer as Markdown that a person pastes into a change request; on a terminal it reads well as it is.

    the recommendation                      one line, with the basis of the verdict and what to see to
    by reconfig, or the steps               its commands, or the file of each server and the command that waits
    if a step fails                         the actions, and whether both directions are safe
    disks                                   the safe alternatives
    what goes wrong                         the story of the run that was found
    evidence, folded                        every question, way, quorum, key and run, with the limits of the answer

Rules of this module: it judges nothing. Only the evidence uses words of model checking. Results of exploration are
never called proved, and a search that was not finished is called that wherever it is named.

The comment on a pull request has the same sections behind a marker that readers do not see: a bot finds its earlier
comment by it, and replaces that one. In a comment that is too long the traces are left out first, and then the largest
folded sections, each with a pointer to the whole answer.

Source: GitHub REST API, "Create an issue comment"; GitHub Flavored Markdown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from checker.command_table import called
from checker.printable import capital, escaped, folded, table
from checker.rollout.answer import Plan
from checker.rollout.claims import Reason
from checker.rollout.disks import HAZARD_WORDS, RemedyKind
from checker.rollout.output.by_reconfig import commands, comparison
from checker.rollout.output.operator_steps import (
    ANSWERS,
    failed_steps,
    if_a_step_fails,
    is_waited_for,
    steps,
    steps_behind,
)
from checker.rollout.output.recommendation import headline, notes, recommendation
from checker.rollout.output.sentences import (
    change_of,
    claim_table,
    direction_sentence,
    finding_words,
    order_words,
    servers,
)
from checker.rollout.output.story import runs, what_goes_wrong
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import QUESTION_WORDS
from checker.scenario.ensemble import NO_FAULTS
from checker.symbolic.report import set_text, view_text
from spec.census.table import CENSUS
from spec.quorum import Sid
from spec.releases import fixed_text
from spec.variants import DESCRIBED

# The verdicts.


BY_THE_PROTOCOL = "Ways are judged by the protocol. Defects of the release were looked at for the recommended steps."
SAME = "Each stage is safe in each way of working (proved), with the check before each stage after the first."


def _verdicts(plan: Plan) -> list[str]:
    """The table of claims."""
    lines = []
    if plan.stages and plan.tried:
        example, were = plan.direct.orders[0], "was" if plan.tried == 1 else "were"
        rest = " Nothing is said of the others: `--order` asks about one." if plan.tried < plan.orders else ""
        lines += [
            f"Of {plan.orders} orders {plan.tried} {were} run; unsafe: {plan.unsafe}. Shown is {order_words(example)}, "
            f"where server {example.leader} leads when it begins.{rest}",
            "",
        ]
    elif plan.stages:
        lines += ["None of its orders was run.", ""]
    lines += claim_table(plan)
    if plan.ways and plan.stages and all(part.proved and not part.stage.changed_roles for part in plan.stages):
        lines += ["", SAME]
    return lines + (["", BY_THE_PROTOCOL] if plan.ways and plan.request.releases is not None else [])


# If a step fails, step by step.


FAILURES = ("step that fails", "service without it", "going on", "going back", "to go back")
STAYS_LOOKING = (
    "One exception to touching no other server: if a server runs and stays LOOKING while others serve, as happens when "
    "another one crashes at the same time, do the next step without waiting, unless a check stands before it (proved)."
)


def _step_failures(plan: Plan) -> list[str]:
    """The verdicts on the files after each failed step."""
    tables = failed_steps(plan)
    lines = ["## Each step, if it fails"] if tables else []
    proved = {row.going_on.reason for _, _, rows in tables for row in rows} <= {Reason.PROVED, Reason.PROVED_IN_ORDER}
    if tables and proved and not any(part.stage.changed_roles for part, *_ in tables):
        lines += ["", STAYS_LOOKING]
    for part, order, rows in tables:
        lines += ["", f"**{capital(change_of(plan, part))}**, if server {order.leader} leads when it begins:", ""]
        cells = []
        for row in rows:
            ways = (f"{ANSWERS[way.outcome]}: {direction_sentence(way)}" for way in (row.going_on, row.going_back))
            undo = (f"{step}{'' if is_waited_for(step) else ' (do not wait for it)'}" for step in row.undo)
            cells.append((f"{row.number}. {row.step}", "yes" if row.serves else "no", *ways, ", ".join(undo)))
        lines += table(FAILURES, cells)
    return lines


# Disks and releases.


REMEDIES = {
    RemedyKind.RETURN_LATE: (
        "Start {} with an empty disk only when all other voters serve and have every acknowledged write (compare "
        "`Zxid:` in their `srvr`). Keep these running until {} {} as well."
    ),
    RemedyKind.NEW_ID: "Or remove {} from the ensemble, and then add new servers with new ids, one at a time.",
    RemedyKind.ERASE: "Erase the disk of {} (keep `myid`), and start it with an empty one: its id is new.",
}


def _disks(plan: Plan) -> list[str]:
    """The disks of the request, and the safe ways."""
    if not plan.request.disks:
        return []
    lines = ["## The disks", ""]
    lines += [f"- Server {sid} starts with {HAZARD_WORDS[kind]}." for sid, kind in sorted(plan.request.disks.items())]
    lines += ["", "What is safe instead:", ""] if plan.remedies else []
    for remedy in plan.remedies:
        pronoun = ("it", "serves") if len(remedy.sids) == 1 else ("they", "serve")
        words = REMEDIES[remedy.kind].format(servers(remedy.sids), *pronoun)
        lines.append(f"- {words}{' (proved)' if remedy.proved else ''}")
    return lines


DEFECTS = "defects"
RARE = (
    "Such a run needs late messages or a slow disk at the wrong moment, too, and the model lets every delay happen. "
    "Real servers of 3.9.5 lost none of 50,598 acknowledged writes in 45 roll-outs with one kill each."
)


def _releases(plan: Plan) -> list[str]:
    """The run in which a known defect of the releases loses a write, and the defects that are enough alone."""
    answer = plan.releases
    if answer is None or answer.finding is None:
        return []
    lines = [f"## ZooKeeper {answer.change}", "", f"{capital(finding_words(answer.finding))}. {RARE}"]
    lines += ["", "One of these defects is enough:", ""] if answer.culprits else []
    lines += [
        f"- `{bug.value}`: {DESCRIBED[bug].wrong}. Fixed: {fixed_text(bug)}. Remedy: {CENSUS[bug.value].remedy}"
        for bug in answer.culprits
    ]
    return [*lines, "", f"{called('defects')} {answer.change.old} lists all of them, with their conditions."]


# The inputs, and the proof.


def _states(plan: Plan) -> list[str]:
    """The two states, where they were read, and how their quorums compare."""
    lines = ["## The two states, and the quick answer", ""]
    for label, folder in (("before", plan.request.old), ("after", plan.request.new)):
        lines.append(f"- **{label}**: {view_text(folder.view)}")
        lines += [f"  - {escaped(sentence)}" for sentence in folder.taken]
        lines += [f"  - warning: {escaped(warning)}" for warning in folder.warnings]
    if plan.request.now is not None:
        lines += ["- **now**:", *(f"  - {escaped(sentence)}" for sentence in plan.request.now.taken)]
    lines += [f"- note: {escaped(note)}" for note in plan.notes]
    stages = [plan.direct, *plan.stages] if plan.direct.stage.remaining else plan.judged
    sentences: dict[str, None] = {}
    for pair in (pair for stage in stages for pair in stage.pairs):
        whose = f"{pair.old} and {pair.new}" if pair.old != pair.new else f"{pair.old} alone"
        words = "every two quorums meet (proved)"
        if pair.disjoint is not None:
            a, b = set_text(pair.disjoint.a), set_text(pair.disjoint.b)
            words = f"DISJOINT QUORUMS. {a} is a quorum by {pair.old}, {b} is one by {pair.new}"
        sentences[f"- {escaped(f'{whose}: {words}')}"] = None
    return [*lines, "", *sentences, "", ENOUGH]


ENOUGH = (
    "A server follows one leader at a time, a write is committed by a quorum, and a new leader asks a quorum what was "
    "committed. So where every two quorums meet and no server changes its role there are never two leaders that both "
    "have one, and no leader begins without what was committed: in any order, under any of these faults, as long as no "
    "disk is lost and every server keeps its address. A server that is an observer by its own file acknowledges "
    "without a log, and is counted by a leader whose file has it as a voter."
)
"""Why it is enough that quorums meet: Zab's own argument. That those of the given files meet is proved."""


def _differences(plan: Plan) -> list[str]:
    """Every key that differs, with the servers that have the same values in one row."""
    rows: dict[tuple[str, ...], list[Sid]] = {}
    for difference in plan.direct.stage.differences:
        values = ("not set" if value is None else value for value in (difference.old, difference.new))
        rows.setdefault((difference.key, *values, difference.effect.value), []).append(difference.sid)
    lines = ["## What differs between the files", ""]
    if not rows:
        return [*lines, "No key differs between the two files of any server."]
    head = ("servers", "key", "before", "after", "effect")
    return [*lines, *table(head, ((", ".join(map(str, sids)), *row) for row, sids in rows.items()))]


THEOREM = (
    "The theorem about roll-outs (`{proofs}`) says: there is one leader in an epoch, every leader "
    "begins with every committed write, and servers agree on the order of writes, whatever crashes and whichever "
    "messages are lost. Its premise: quorums of each stage, and of neighbouring stages, meet if all their servers run "
    "in the later one; and all servers that run follow one leader before a stage begins. It is proved of abstract Zab, "
    "for any number of servers. That the specification refines abstract Zab is checked, not proved."
)


def _order_proofs(plan: Plan) -> list[str]:
    """The theorem about roll-outs with its premises instantiated, for each order that it proves; empty without one."""
    lines: list[str] = []
    for order, proof in (pair for part in plan.judged for pair in zip(part.orders, part.order_proofs, strict=False)):
        rows = []
        for number, stage in enumerate(proof.stages):
            step = proof.conditions[number - 1].step if number else 0
            begins = f"step {step}" if step else "the first state"
            rows.append((str(number), begins, view_text(stage.view), ", ".join(map(str, sorted(stage.running)))))
        met = ", ".join(f"{number} and {number + 1}" for number in range(len(rows) - 1))
        lines += ["", f"**{order_words(order)}**, if server {order.leader} leads when it begins:", ""]
        lines += [*table(("stage", "begins with", "quorums", "servers that run"), rows), ""]
        lines += [f"Of one stage, and of the stages {met}: every two quorums of running servers meet."]
    return ["## The proof of the order", "", THEOREM.format(proofs=called("proofs")), *lines] if lines else []


# The table of runs, and the limits.


OUTCOMES = {
    SafetyVerdict.UNSAFE: "**violated**: {}",
    SafetyVerdict.STALLS: "a wait in vain",
    SafetyVerdict.OPEN: "not finished",
    SafetyVerdict.SAFE: "all explored",
}


def _what_was_checked(plan: Plan) -> list[str]:
    """The table of all runs, and their bounds."""
    lines = ["## What was checked", ""]
    if not plan.runs:
        return [*lines, "The quorums were compared. No run was made."]
    lines += ["| stage | question | faults | leads when it begins | result | states | depth | s |"]
    lines += ["| --- | --- | --- | --- | --- | ---: | ---: | ---: |"]
    rows: dict[tuple[str, str], tuple[list[str], RunResult]] = {}
    for result in plan.runs:  # one run may answer several questions
        stage = f"{result.spec.stage.old.label} to {result.spec.stage.new.label}"
        questions, first = rows.setdefault((stage, result.text), ([], result))
        questions.append(QUESTION_WORDS[result.spec.question])
        if result.found and not first.found:
            rows[stage, result.text] = (questions, result)
    for (stage, _), (questions, result) in rows.items():
        leader = "any" if result.spec.leader is None else str(result.spec.leader)
        outcome = OUTCOMES[result.outcome].format(escaped(result.prop))
        outcome += ", the first steps in one order" if result.spec.opening else ""
        question = " and ".join(dict.fromkeys(questions))
        cells = (escaped(stage), question, escaped(result.spec.under or "none"), leader, outcome)
        lines.append(f"| {' | '.join(cells)} | {result.states:,} | {result.depth} | {result.seconds:.1f} |")
    full = any(result.end is RunEnd.MEMORY for result in plan.runs)
    shared = "its limit, or its share of the free memory" if full else "its limit"
    work = f"{plan.seconds:.0f} s of work in all. A run that is not finished has used up {shared}. Bounds:"
    return [*lines, "", work, "", *_bounds(plan.runs)]


def _bounds(runs: Sequence[RunResult]) -> list[str]:
    """The bounds of each kind of run, without repetitions."""
    kinds: dict[str, list[RunResult]] = {}
    for result in runs:
        model = "the election alone" if not result.spec.zab else "the whole protocol"
        model += f", {result.spec.writes} write{'s' * (result.spec.writes > 1)}" if result.spec.writes else ""
        kinds.setdefault(model, []).append(result)
    lines, common_bounds = [], {NO_FAULTS}
    for kind, of_kind in kinds.items():
        common = set.intersection(*(set(result.bounds) for result in of_kind)) - common_bounds
        new = [bound for bound in of_kind[0].bounds if bound in common]
        common_bounds |= common
        lines.append(f"- {kind}: {escaped('; '.join(new)) or 'as above'}")
    return lines


NOT_COVERED = (
    "Disks that are lost or changed by hand, two processes with one id, and servers that are restarted together or "
    "while one before them is still missing.",
    "Whatever is bounded above: more faults than were asked for, more than one write, more elections.",
    "Messages of an election one by one: an election is one step here, to any of its outcomes (`{run} "
    "--refine` tells a saved scenario message by message).",
    "Time: how long elections and restarts take, time-outs that are too short, clients that give up.",
    "Values of keys that are too small or wrong in practice, and files that keys name.",
    "Defects of a release, unless `--release` names it.",
)
OF_RECONFIG = (
    "Of `reconfig`: servers that differ in `reconfigEnabled`, changes of an address, groups and weights, a restart of "
    "a joiner that has not activated its configuration, and whether all servers serve in the end. Its defects are "
    "those of 3.9.5; other releases were not measured."
)
ASSUMED = (
    "The present state: it is assumed that all servers that run follow one leader and have equal data when the "
    "roll-out begins. `{diagnose}` shows whether they do."
)
BEFORE_NOW = (
    "What the answers, disks and logs of the servers do not show of the present state. A key that an answer does not "
    "state is read from the given file: the one with which the server was started."
)
MEANINGS = {
    "proved": "by these files, any servers that may elect a leader include one with every acknowledged write.",
    "explored to the end": "a program has followed every possible run within the limits that are listed here.",
    "acknowledged write": "a write whose client has the answer that it is done.",
    "committed write": "a write that a quorum has on disk. Every acknowledged write is committed.",
    "fault": "a crash, a network failure between servers, or a connection that breaks. A restart by the plan is none.",
    "leader": "the server that orders all writes; the other voters follow it. `srvr` shows `Mode: leader`.",
    "observer": "a server that receives every write and has no vote.",
    "quorum": "a set of voters that may decide without the others: more than half of them, by a server's file.",
    "stage": "a part of the change, which is finished before the next part begins.",
    "voter": "a server that takes part in elections, and whose acknowledgements count.",
}


def _limits(plan: Plan) -> list[str]:
    """The limits of all answers of a plan, and the words that it uses."""
    before = ASSUMED if plan.request.now is None else BEFORE_NOW
    limits = (before, *NOT_COVERED, *((OF_RECONFIG,) if plan.reconfig_route is not None else ()))
    names = {name: called(name) for name in ("diagnose", "run")}
    lines = ["## What is not covered, and words used here", "", *(f"- {limit}".format_map(names) for limit in limits)]
    return [*lines, "", *(f"- **{word}**: {meaning}" for word, meaning in MEANINGS.items())]


MARKER = "<!-- quorate: rollout -->"
LONGEST = 65_536  # characters; GitHub refuses a longer comment
LEFT_OUT = "Left out here: the comment would be too long. `--output FILE.md` has the whole answer."
CUT = "\n\n(Cut off here: the comment would be too long. `--output FILE.md` has the whole answer.)\n"
MORE = "`--explain` prints the evidence."
MORE_WITH_THE_WAY_BACK = "`--explain` prints the steps of the way back, and the evidence."


@dataclass(frozen=True)
class AnswerSection:
    """A part of the answer: its heading, its lines, and whether it is evidence, which is folded away."""

    heading: str
    lines: list[str]
    evidence: bool = False

    @property
    def text(self) -> list[str]:
        """The lines with the heading."""
        head = [self.heading, ""] if self.lines else [self.heading]
        return folded(self.heading.lstrip("# "), self.lines) if self.evidence else [*head, *self.lines]


def markdown(plan: Plan, *, traces: bool = True, evidence: bool = True) -> str:
    """The whole document, with a newline at its end.

    `traces`: with every trace that was found. Without `evidence` a line points to it instead.
    """
    parts = ["\n".join(part.text) for part in sections(plan, traces=traces) if evidence or not part.evidence]
    more = MORE if plan.back is None else MORE_WITH_THE_WAY_BACK
    return "\n\n".join(parts if evidence else [*parts, more]) + "\n"


def sections(plan: Plan, *, traces: bool) -> list[AnswerSection]:
    """The sections of the document; the first has the recommendation as its heading."""
    route = commands(plan)
    by_reconfig, wrong = plan.reconfig_route is not None, what_goes_wrong(plan)
    operator = [
        [f"# {recommendation(plan)}", "", *notes(plan)],
        [] if plan.stages else wrong,
        *([route] if by_reconfig else steps(plan)),
        if_a_step_fails(plan),
        _disks(plan),
        wrong if plan.stages else [],
    ]
    evidence = [
        [f"## {escaped(headline(plan))}", "", *_verdicts(plan)],
        comparison(plan),
        *([] if by_reconfig else [route]),
        *steps_behind(plan),
        _step_failures(plan),
        _releases(plan),
        runs(plan, traces=traces),
        _states(plan),
        _order_proofs(plan),
        _differences(plan),
        _what_was_checked(plan),
        _limits(plan),
    ]
    front = [AnswerSection(lines[0], lines[2:]) for lines in operator if lines]
    return [*front, *(AnswerSection(lines[0], lines[2:], evidence=True) for lines in evidence if lines)]


def github_comment(plan: Plan) -> str:
    """The comment, with a newline at its end; shorter than `LONGEST`."""
    text = _joined(sections(plan, traces=True))
    parts = sections(plan, traces=False) if len(text) >= LONGEST else []
    text = _joined(parts) if parts else text
    for section in sorted(parts, key=lambda section: -sum(map(len, section.lines))):
        if len(text) >= LONGEST and section.evidence:
            parts[parts.index(section)] = replace(section, lines=[LEFT_OUT])
            text = _joined(parts)
    return text if len(text) < LONGEST else text[: LONGEST - len(CUT) - 1] + CUT


def _joined(given: list[AnswerSection]) -> str:
    first, *rest = given
    parts = [replace(first, heading=f"#{first.heading}"), *rest]
    return "\n\n".join([MARKER, *("\n".join(part.text) for part in parts)]) + "\n"
