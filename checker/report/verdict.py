"""The verdict of a run. Every report and the exit code follow from it.

The first of these that applies is the verdict: violated, deadlock, error, incomplete, vacuous, passed. Rules:

- No report has a success next to a violation, and a space is called exhausted only if it was.
- A run that reaches a requested depth is not incomplete: its verdict is "no violation within depth N". Stopping after
  the last witness is also a requested stop; it makes no claim about the coverage of actions.
- Liveness is judged only on an exhausted space. A run that ended before that is incomplete, even at a requested depth;
  any other violation takes precedence.
- A run is vacuous if nothing can happen, one of the known actions never fired (unless the job allows it), a
  `sometimes` was never witnessed, the premise of an `always` held nowhere, or an `eventually` was demanded nowhere. A
  pass would then say less than it seems to.
- A job that expects a verdict exits with 0 iff it gets it, and else with the code of its verdict, or 1. If it names the
  violations with their depths, exactly these must be found.
- A run that the budget of the whole command ended is incomplete, and also undecided: neither as expected nor
  unexpected. Its code is 0, since it found no violation, but it is not called a success. A run without any time in the
  budget has the code of an incomplete one.
- Random walks are violated, deadlocked or incomplete, and never passed. Their expectation names properties alone, since
  the depths of their violations are not least.
- A run that an interrupt ended or prevented is never as expected, even if a limit was expected to end it.

The outcome of a requested run has its judgement, and its place in a file; every report of a command is a view of the
outcomes.

- Every requested run has an outcome, including those that could not be read and those that never began. No report omits
  one.
- The exit code of several runs is the gravest one: an earlier incomplete run does not hide a violation.
- Lines come from the text that the job was made from. They stay correct if the file has changed since.
- A property that the scenario names has its own line. A default property, which the scenario does not name, has the
  line of `expect`, and so does a verdict on the whole run. Without `expect` it is the line of `name`, and otherwise the
  first line.
- Paths are relative to the top of the checkout, as the readers of reports expect: to `GITHUB_WORKSPACE` if that is set
  and the file is below it, and otherwise to the current folder.
"""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from checker.command import ExitCode
from checker.engine.bounds import Bound, bounds_among
from checker.engine.discovery import Discovery
from checker.engine.model import STRONG, Kind, Property, Strength
from checker.engine.result import Evaluations, Exploration, Liveness, Stop
from checker.engine.values import show
from checker.job import Job, Verdict
from checker.scenario.yaml_lines import ScenarioError, YamlDocument, read_yaml
from checker.traces.trace import Trace, values_of

JUDGING = (Kind.ALWAYS, Kind.FINAL)
"""The kinds of properties that are judged state by state, and whose finding is a violation."""


@dataclass(frozen=True)
class Judgement:
    """A verdict with its exit code, a sentence that opens with the verdict, and every reason for it.

    `different` describes the expected violations if others were found, and is empty otherwise. `silent` are the known
    actions that never fired, including those that the job allows to be silent. `undecided`: the budget of the whole
    command ended the run, and nothing had been found. `broken_off`: an interrupt ended the run, or it never began.
    `explanation` is the sentence without the verdict, for a run that ended.
    """

    verdict: Verdict
    exit_code: int
    sentence: str
    reasons: tuple[str, ...] = ()
    expected: Verdict | None = None
    silent: tuple[str, ...] = ()
    undecided: bool = False
    broken_off: bool = False
    different: str = ""
    explanation: str = ""

    @property
    def as_expected(self) -> bool | None:
        """Whether the verdict is the expected one; None if none was expected, or it is undecided."""
        if self.expected is None or self.undecided:
            return None
        return self.verdict is self.expected and not self.different and not self.broken_off

    @property
    def remark(self) -> str:
        """The remark on the expectation: `as expected`, `expected: passed`, `undecided`, or an empty string."""
        if self.undecided:
            return "undecided" + (f", expected: {self.expected.value}" if self.expected else "")
        if self.expected is None:
            return ""
        return "as expected" if self.as_expected else f"expected: {self.different or self.expected.value}"


def judge(
    job: Job,
    exploration: Exploration,
    actions: Collection[str] = (),
    *,
    bare: bool = False,
    on_budget: bool = False,
) -> Judgement:
    """Judge a run that was not interrupted. `actions` are the names of all actions that the model has.

    `bare` gives the exit code of the verdict itself, for any expectation of the job. `on_budget`: the time limit of the
    run is its share of the command's budget.
    """
    fired = {name for name, coverage in exploration.coverage.items() if coverage.fired}
    silent = tuple(sorted(set(actions) - fired))
    verdict, code, reasons = _verdict(job, exploration, silent)
    if on_budget and verdict is Verdict.INCOMPLETE and exploration.stop is Stop.TIME:
        return _undecided(job, exploration, silent, bare=bare)
    explanation = _sentence(verdict, exploration, reasons)
    sentence = f"{verdict.value}: {explanation}"
    broken_off = verdict is Verdict.INCOMPLETE and exploration.stop is Stop.INTERRUPTED
    different = _different(job, exploration)
    as_expected = verdict is job.expected and not different
    exit_code = _exit_code(code, job.expected, as_expected=as_expected, bare=bare or broken_off)
    return Judgement(
        verdict,
        exit_code,
        sentence,
        reasons,
        job.expected,
        silent,
        broken_off=broken_off,
        different=different,
        explanation=explanation,
    )


def _different(job: Job, exploration: Exploration) -> str:
    """The violations that the job expects, in words, if others were found."""
    if job.expected is None or job.violations is None:
        return ""
    found = {discovery.prop.name: discovery.depth for discovery in exploration.violations}
    if found == dict(job.violations) or (exploration.sampled and found and set(found) <= set(job.violations)):
        return ""
    expected = ", ".join(f"{name} at depth {depth}" for name, depth in sorted(job.violations.items()))
    return f"{job.expected.value}, {expected}"


def refuse(
    message: str, code: ExitCode = ExitCode.SCENARIO, expected: Verdict | None = None, *, bare: bool = False
) -> Judgement:
    """The judgement of a run that could not begin or continue, with the code of the error."""
    exit_code = _exit_code(code, expected, as_expected=expected is Verdict.ERROR, bare=bare)
    return Judgement(Verdict.ERROR, exit_code, f"error: {message}", (message,), expected)


def not_explored(job: Job, reason: str) -> Judgement:
    """The judgement of a run without any states, for any expected verdict."""
    code, sentence = int(ExitCode.INCOMPLETE), f"incomplete: {reason}"
    return Judgement(Verdict.INCOMPLETE, code, sentence, (reason,), job.expected, broken_off=True)


def _undecided(job: Job, exploration: Exploration, silent: tuple[str, ...], *, bare: bool) -> Judgement:
    space = f"{exploration.states:,} states, to depth {exploration.depth}"
    reason = f"no violation within the budget: {space}"
    code = ExitCode.INCOMPLETE if bare else ExitCode.PASSED
    return Judgement(
        Verdict.INCOMPLETE, int(code), f"incomplete: {reason}", (reason,), job.expected, silent, undecided=True
    )


def is_idle(exploration: Exploration, prop: Property) -> bool:
    """Whether the premise of a property of all states, of steps, or of the ends that were examined, never held."""
    count = exploration.evaluations.get(prop.name)
    return (
        count is not None
        and not isinstance(prop, Bound)
        and not count.premise
        and (prop.kind is Kind.ALWAYS or (prop.kind is Kind.FINAL and count.states > 0))
    )


def may_be_idle(job: Job, prop: Property) -> bool:
    """Whether the job excuses such a property whose premise never holds."""
    return prop.kind in JUDGING and prop.name in job.allowed_silent


def finding_text(found: Discovery) -> str:
    """A finding in words: the property, its depth, the clause and the values."""
    values = ", ".join(f"{name} = {show(value)}" for name, value in values_of(found.finding))
    depth = "" if found.prop.kind.is_liveness else f" at depth {found.depth}"
    return f"{found.prop.name}{depth}: {found.finding.clause}{f' ({values})' if values else ''}"


def _exit_code(code: ExitCode, expected: Verdict | None, *, as_expected: bool, bare: bool) -> int:
    if bare or expected is None:
        return int(code)
    if as_expected:
        return int(ExitCode.PASSED)
    return int(code) or int(ExitCode.UNEXPECTED)


def _verdict(job: Job, exploration: Exploration, silent: Iterable[str]) -> tuple[Verdict, ExitCode, tuple[str, ...]]:
    """The first verdict of the lattice that applies, its own exit code, and the reasons."""
    safety = [discovery for discovery in exploration.violations if discovery.prop.kind is Kind.ALWAYS]
    if safety:
        return Verdict.VIOLATED, ExitCode.SAFETY, _by_depth(exploration, safety)
    deadlocks = [discovery for discovery in exploration.violations if discovery.prop.kind is Kind.FINAL]
    if deadlocks:
        return Verdict.DEADLOCK, ExitCode.DEADLOCK, _by_depth(exploration, deadlocks)
    if exploration.violations:
        return Verdict.VIOLATED, ExitCode.LIVENESS, _by_depth(exploration, exploration.violations)
    if exploration.sampled:
        return Verdict.INCOMPLETE, ExitCode.INCOMPLETE, (exploration.sampled,)
    if exploration.stop is Stop.MEMORY:
        return Verdict.INCOMPLETE, ExitCode.TOO_LARGE, (_limit(exploration),)
    if exploration.stop not in (Stop.EXHAUSTED, Stop.DEPTH, Stop.WITNESSED):
        return Verdict.INCOMPLETE, ExitCode.INCOMPLETE, (_limit(exploration),)
    if exploration.unjudged:
        return Verdict.INCOMPLETE, ExitCode.INCOMPLETE, (_unjudged(exploration),)
    gaps = () if exploration.stop is Stop.WITNESSED else _gaps(job, exploration, silent)
    if gaps:
        return Verdict.VACUOUS, ExitCode.VACUOUS, gaps
    return Verdict.PASSED, ExitCode.PASSED, ()


def _by_depth(exploration: Exploration, found: list[Discovery]) -> tuple[str, ...]:
    ordered = sorted(found, key=lambda discovery: discovery.depth)
    return tuple(finding_text(run) + _forced(exploration.liveness.get(run.prop.name)) for run in ordered)


def _forced(examined: Liveness | None) -> str:
    """The actions by which alone a violated property would hold."""
    forced = () if examined is None else examined.forced
    return f"; it holds only if these actions must happen: {', '.join(forced)}" if forced else ""


def fairness(exploration: Exploration, prop: Property) -> tuple[list[str], list[str], list[str]]:
    """The actions that were assumed to happen if they stay possible, those that were if they are possible again and
    again, and those that need never happen.

    An action that is fair in some rules only has the names of these rules behind it.
    """
    groups: dict[Strength, dict[str, list[str]]] = {True: {}, STRONG: {}, False: {}}
    for rule in exploration.model.rules:
        for action in rule.actions or rule.named_fair or (f"every action of {rule.name!r}",):
            strength = rule.strength(action) if action not in prop.unfair else False
            groups[strength].setdefault(action, []).append(rule.name)
    weak, strong, free = groups.values()

    def listed(fair: dict[str, list[str]], *others: dict[str, list[str]]) -> list[str]:
        mixed = {name for other in others for name in other}
        return [f"{name} ({', '.join(fair[name])})" if name in mixed else name for name in sorted(fair)]

    return listed(weak, strong, free), listed(strong, weak, free), sorted(free)


def _gaps(job: Job, exploration: Exploration, silent: Iterable[str]) -> tuple[str, ...]:
    """The reasons why a pass would say less than it seems to."""
    reasons = [] if exploration.model.properties else ["no property was given, so that nothing was checked"]
    if exploration.exhausted and exploration.states == 1 and not exploration.transitions:
        reasons.append("nothing can happen in the first state")
    reasons += [f"the action {name} never fired" for name in silent if name not in job.allowed_silent]
    for prop in exploration.model.properties:
        if prop.kind is Kind.SOMETIMES and prop.name not in exploration.found:
            reasons.append(f"{prop.name} was never witnessed")
        count = exploration.evaluations.get(prop.name, Evaluations())
        if is_idle(exploration, prop) and not may_be_idle(job, prop):
            never = f"{prop.name} was never examined, since none of its actors takes a step"
            reasons.append(f"the premise of {prop.name} never held" if count.states else never)
        examined = exploration.liveness.get(prop.name)
        if examined is not None and not examined.open and not (prop.kind is Kind.RECOVERABLE and examined.goals):
            reasons.append(f"{prop.name} was demanded in no state")
        if prop.kind is Kind.FINAL and not count.states:
            bound = f" of at most {exploration.depth} steps" if exploration.stop is Stop.DEPTH else ""
            reasons.append(f"{prop.name} was never examined, since no run{bound} ends")
    return tuple(reasons)


def _sentence(verdict: Verdict, exploration: Exploration, reasons: tuple[str, ...]) -> str:
    if verdict is Verdict.PASSED:
        return _extent(exploration)
    first = reasons[0] + (f"; and {len(reasons) - 1} more" if len(reasons) > 1 else "")
    if verdict is Verdict.INCOMPLETE and not exploration.sampled:
        space = f"{exploration.states:,} states seen, to depth {exploration.depth}"
        return f"{first}; no violation among the {space}"
    return f"{first} ({_extent(exploration)})" if verdict is Verdict.VACUOUS else first


def _extent(exploration: Exploration) -> str:
    """The facts about a run without a violation, and no claims beyond them."""
    if exploration.stop is Stop.WITNESSED:
        return f"every witness was found within depth {exploration.depth}, and the search ended there"
    assumption = exploration.assumption
    space = f"no violation, space exhausted: {exploration.states:,} states"
    for bound in bounds_among(exploration.model.properties):
        count = exploration.evaluations.get(bound.name, Evaluations()).premise
        space += f", and what follows {count:,} of them beyond the bound {bound.name} is unknown" if count else ""
    extent = f"no violation within depth {exploration.depth}" if exploration.stop is Stop.DEPTH else space
    return f"{extent}; {assumption}" if assumption else extent


def _unjudged(exploration: Exploration) -> str:
    depth = exploration.limits.depth
    return f"{' and '.join(exploration.unjudged)} cannot be judged within a depth ({depth}): it needs the whole space"


def _limit(exploration: Exploration) -> str:
    """The limit that ended a search, and the content that grew."""
    end = _ending(exploration)
    return f"{end}; {exploration.growth}" if exploration.growth else end


def _ending(exploration: Exploration) -> str:
    limits = exploration.limits
    if exploration.stop is Stop.MEMORY:
        return f"the state space is too large for the memory given ({memory(limits.memory or 0)})"
    if exploration.stop is Stop.TIME:
        return f"the time given ({limits.seconds:g} s) ended the search"
    if exploration.stop is Stop.WORK:
        return f"the work given ({limits.work:,} transitions) ended the search"
    if exploration.stop is Stop.STATES:
        return f"the number of states given ({limits.states:,}) ended the search"
    return "the search was interrupted"


def memory(size: float) -> str:
    """A number of bytes for a reader, with decimal prefixes."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


GRAVITY = (0, 1, 2, 21, 20, 152, 151, 150, 11, 13, 12)  # exit codes, by the lattice of verdicts


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one run. `path` is the path of its scenario as given on the command line; None without a scenario.

    Without a `job` the scenario could not be read, and `line` is the line of the error (0: unknown). Without an
    `exploration` it was not explored. `traces` are the requested traces, and `began` is the start time in seconds since
    1970. `interrupted`: an interrupt ended the run; `dropped`: it ended the command before the run began.
    """

    name: str
    judgement: Judgement
    job: Job | None = None
    exploration: Exploration | None = None
    traces: tuple[Trace, ...] = ()
    path: Path | None = None
    line: int = 0
    interrupted: bool = False
    dropped: bool = False
    began: float | None = None

    @property
    def findings(self) -> list[Trace]:
        """The traces that end in a violation or a deadlock."""
        return [trace for trace in self.traces if trace.kind is not Kind.SOMETIMES]

    @property
    def witnesses(self) -> list[Trace]:
        """The traces that show that a `sometimes` is possible."""
        return [trace for trace in self.traces if trace.kind is Kind.SOMETIMES]

    @property
    def is_good(self) -> bool:
        """Whether the result is neither unexpected nor left open by a budget."""
        return self.judgement.exit_code == 0 and not self.judgement.undecided


def gravest(outcomes: Iterable[RunOutcome]) -> int:
    """The gravest exit code of the outcomes; 0 if there are none."""
    return max((outcome.judgement.exit_code for outcome in outcomes), key=GRAVITY.index, default=0)


class SourceLocation(NamedTuple):
    """A file (its path with slashes) and a line number, counted from 1."""

    file: str
    line: int


def location_of(outcome: RunOutcome, prop: str | None = None) -> SourceLocation | None:
    """The place of a property of a run, or of the run as a whole; None for a run without a file."""
    if outcome.path is None:
        return None
    file = shown_path(outcome.path)
    if outcome.job is None:
        return SourceLocation(file, max(1, outcome.line))
    located = _located(outcome.job)
    if located is None:
        line = outcome.job.source.get("line")  # of a model in a Python file
        return SourceLocation(file, line if isinstance(line, int) else 1)
    number = _line_of(located, outcome.job, prop) if prop is not None else 0
    return SourceLocation(file, number or _usual_line(located))


def shown_path(path: Path) -> str:
    """A path in the form that reports use."""
    for top in (os.environ.get("GITHUB_WORKSPACE"), str(Path.cwd())):
        # The path is not resolved: a symbolic link belongs to the checkout, even if its target does not.
        absolute = Path(os.path.abspath(path))  # noqa: PTH100
        if top and absolute.is_relative_to(top):
            return absolute.relative_to(top).as_posix()
    return path.as_posix()


def _located(job: Job) -> YamlDocument | None:
    """The scenario's text with its lines; None for a job without a scenario."""
    text = job.source.get("text")
    if not isinstance(text, str):
        return None
    try:
        located = read_yaml(text, str(job.source.get("file")))
    except ScenarioError:
        return None
    return located if isinstance(located.value, dict) else None


def _line_of(located: YamlDocument, job: Job, name: str) -> int:
    """The line of a property that the scenario names; 0 for others. The items of a list have the same order in the
    model.
    """
    for kind in Kind:
        same: list[Property] = [prop for prop in job.model.properties if prop.kind is kind]
        items = located.value.get(kind.value)
        for number, prop in enumerate(same):
            if prop.name == name and isinstance(items, list) and len(items) == len(same):
                return located.lines.get((kind.value, number), 0)
    return 0


def _usual_line(located: YamlDocument) -> int:
    return next((located.lines[(key,)] for key in ("expect", "name") if (key,) in located.lines), 1)
