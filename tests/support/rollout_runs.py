"""Roll-outs between the shipped folders, and runs that no engine made, for tests of the planner's conclusions."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from checker.diagnose.present_state import present_state
from checker.rollout import Plan, PlanRequest, SafetyVerdict, plan, read_folder
from checker.rollout.files.differences import Interruption
from checker.rollout.inputs.folders import Folder
from checker.rollout.runs import RunEnd, Runner, RunResult
from checker.rollout.scenarios import RunSpec
from checker.rollout.stages import Stage, whole
from checker.scenario import bundled
from spec.quorum import Sid

FOLDERS = bundled()[0].parent.parent / "rollouts"
FIXTURES = Path(__file__).parent.parent / "fixtures"
SAMPLES, OPERATOR = FIXTURES / "rollout_inputs", FIXTURES / "operator"
HEAD = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nclientPort=2181\n"

ENDS = {
    SafetyVerdict.UNSAFE: RunEnd.VIOLATION,
    SafetyVerdict.OPEN: RunEnd.WORK,
    SafetyVerdict.STALLS: RunEnd.STALL,
    SafetyVerdict.SAFE: RunEnd.EXHAUSTED,
}


def made_up(
    spec: RunSpec, outcome: SafetyVerdict, *, seconds: float = 0.0, states: int = 10, name: str = ""
) -> RunResult:
    """Return a run with this outcome, without a finding."""
    return RunResult(spec, outcome, ENDS[outcome], states, 2, seconds, (), name or spec.name)


def fine(spec: RunSpec, seconds: float) -> RunResult:
    """A run that finds nothing, of an engine that explores nothing."""
    return made_up(spec, SafetyVerdict.SAFE)


def unfinished(spec: RunSpec, seconds: float) -> RunResult:
    """A run that the budget ends."""
    return made_up(spec, SafetyVerdict.OPEN)


def never(spec: RunSpec, seconds: float) -> RunResult:
    """A runner that must not be called, for changes that a proof decides."""
    raise AssertionError(f"{spec.name} was run for {seconds} s")


def lines_of(sids: Iterable[Sid], *, observers: Collection[Sid] = (), host: str = "zoo") -> str:
    return "".join(f"server.{sid}={host}{sid}:2888:3888{':observer' if sid in observers else ''}\n" for sid in sids)


def folder_of(path: Path, voters: Iterable[Sid], observers: Collection[Sid] = (), *, more: str = "") -> Folder:
    """A folder with one file for these servers, which ends with further lines."""
    return folder_with(path, HEAD + lines_of(sorted((*voters, *observers)), observers=observers) + more)


def folder_with(path: Path, text: str) -> Folder:
    """A folder with this text as the file of all servers."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "zoo.cfg").write_text(text, encoding="utf-8")
    return read_folder(path)


def shipped(name: str) -> Folder:
    return read_folder(FOLDERS / name)


def edited(path: Path, name: str, *changes: tuple[str, str], more: str = "") -> Folder:
    """A folder with the file of a shipped one after these changes, and with further lines at its begin."""
    text = (FOLDERS / name / "zoo.cfg").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return folder_with(path, more + text)


def change_of(old: str | Folder, new: str | Folder, applied: frozenset[Sid] = frozenset()) -> Stage:
    """The change between two folders, in one go; a text is the name of a shipped one."""
    change = whole(*(shipped(each) if isinstance(each, str) else each for each in (old, new)))
    return replace(change, applied=applied)


def seen_state(folder: Path, old: Folder, new: Folder) -> Interruption:
    """The state by the files of a folder, as if every server had answered that it serves with them."""
    return replace(present_state([str(folder)], old, new), unseen=frozenset())


def plan_of(
    old: str | Folder,
    new: str | Folder,
    runner: Runner,
    order: tuple[Sid, ...] | None = None,
    leader: Sid | None = None,
    **options: object,
) -> Plan:
    """The plan for the change between two folders; a text is the name of a shipped one."""
    folders = (shipped(each) if isinstance(each, str) else each for each in (old, new))
    return plan(PlanRequest(*folders, order, leader, **options), runner)  # type: ignore[arg-type]
