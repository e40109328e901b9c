"""The options of `python -m checker`, and the types of their values.

A bad command line ends with exit code 2 and a one-line message. All commands that explore share the options of a run
(engine, limits, output). A profile is a name for several options, for the two most common gates; an option on the
command line takes precedence over it.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from checker.cluster import Workers, workers_named
from checker.command import NUMBER, command_line, release, seconds
from checker.command_table import called
from checker.engine.result import MOST_SEED, SEED
from checker.execution import Deadline
from checker.models.ensemble.actions import BUDGETS, FORMER_NAMES
from checker.user_files import OutputError
from spec.quorum import Sid
from spec.text import LONG, between, integers, required_decimal
from spec.variants import Variant

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
OPTIONAL = tuple(name for name, each in BUDGETS.items() if each.option is not None)
"""The budgets that an option sets."""

DESCRIPTION = """\
Explores every interleaving of a small ZooKeeper ensemble and says whether its invariants hold; if not, it shows the
shortest run that breaks one. Without a command, a named set of runs for --nodes servers; with options that describe
an ensemble (--grain, --observers, a fault), that one run."""

EPILOG = """\
exit codes: 0 as expected, 11 deadlock, 12 violated, 20 incomplete, 21 vacuous, 150 bad scenario, 151 bad
configuration file, 152 too large for the memory given, 2 bad command line."""


REPORT_FILES = ("junit", "sarif", "report")
"""The options with the path of a report."""


class _FormerOption(argparse.Action):
    """An option with a former name: an error that gives the present one."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error(f"{self.option_strings[0]} is now {option(FORMER_NAMES[self.dest])}")


def wants_reports(options: argparse.Namespace) -> bool:
    """Return whether the command writes reports, which also list scenarios with errors."""
    return options.github or any(getattr(options, name) is not None for name in REPORT_FILES)


def parser(commands: Iterable[str] = ()) -> argparse.ArgumentParser:
    """Make the parser of the main job; its help lists the other commands of the program."""
    others = ", ".join(commands)
    epilog = f"commands: {others} (each with --help)\n{EPILOG}" if others else EPILOG
    top = command_line(called("nodes"), DESCRIPTION, epilog)
    top.set_defaults(command="nodes")
    _ensemble(top)
    add_exploration(top)
    top.add_argument("--list-variants", action="store_true", help="list known defects and mutants (--json: as JSON)")
    return top


def _ensemble(top: argparse.ArgumentParser) -> None:
    """Add the options that describe an ensemble. Each is None unless it is given, also with its usual value."""
    group = top.add_argument_group("the ensemble")
    group.add_argument("--nodes", type=between(1, 7), default=3, metavar="N", help="servers, 1 to 7 (default: 3)")
    group.add_argument("--observers", type=between(0, 6), metavar="K", help="the last K are observers")
    group.add_argument("--grain", choices=("fine", "oracle"), help="every message, or an election in one step")
    group.add_argument(
        "--established", action="store_true", default=None, help="begin with a leader, not with a cold start"
    )
    group.add_argument(
        "--other-view", type=other_view, action="append", metavar="SID=1,2,3",
        help="give one server a configuration with these voters; may be repeated",
    )  # fmt: skip
    group.add_argument("--rounds", type=between(1, 9), metavar="R", help="no election begins beyond (2)")
    group.add_argument("--capacity", type=between(1, 9), metavar="M", help="messages in flight a channel (2)")
    group.add_argument("--protocol", choices=("election", "zab"), help="the election alone (default), or all of Zab")
    group.add_argument("--discovery", choices=("packets", "one-step"), help="one-step: an election begins its epoch")
    faults = top.add_argument_group("faults, each with its budget (default: 0)")
    for name in OPTIONAL:
        budget = BUDGETS[name]
        meaning = f"with zab: {budget.option}" if budget.domain.is_of_zab else budget.option
        faults.add_argument(option(name), type=between(0, 9), metavar="K", help=meaning)
    for former in FORMER_NAMES:
        faults.add_argument(f"--{former}", action=_FormerOption, help=argparse.SUPPRESS)
    faults.add_argument("--late", type=between(0, 7), metavar="K", help="the last K servers start late or never")


def option(budget: str) -> str:
    """The option that sets a budget."""
    return f"--{budget.replace('_', '-')}"


def add_exploration(command: argparse.ArgumentParser) -> None:
    """Add the options of an exploration: variants and releases, limits, engine, output and gates."""
    add_limits(command)
    output = command.add_argument_group("the output")
    output.add_argument("--json", action="store_true", help="a report for machines, on standard output")
    output.add_argument("--levels", action="store_true", help="the number of new states at each depth")
    add_format(output, "how to show a run (default: text)")
    output.add_argument("--traces", type=Path, metavar="DIR", help="write every run found there, in every format")
    output.add_argument("--refine", action="store_true", help="tell a run of the oracle grain message by message")
    output.add_argument("--verdict", action="store_true", help="exit with the verdict's own code, expected or not")
    _add_gate(command)


def add_limits(command: argparse.ArgumentParser) -> None:
    """Add the options for the engine and the limits of a run."""
    group = command.add_argument_group("the exploration")
    add_defects(group)
    group.add_argument("--depth", type=between(0, 10**6), metavar="D", help="no further than D steps")
    group.add_argument("--states", type=between(1, 10**10), metavar="S", help="stop after so many states")
    group.add_argument("--time", type=seconds, metavar="T", help="stop after a time, such as 60s or 5m")
    group.add_argument("--memory", type=size, metavar="M", help="stop at a size, such as 4G (default: 80%% of free)")
    group.add_argument("--engine", choices=("tables", "plain", "both"), default="tables", help="both: compare them")
    group.add_argument(
        "--seed", type=between(0, MOST_SEED), default=SEED, metavar="K",
        help=f"the key of the fingerprints: another one is a second opinion on collisions (default: {SEED})",
    )  # fmt: skip
    group.add_argument(
        "--reduce", choices=("none", "symmetric", "auto", "compare"),
        help="fewer states, the same answers: symmetric counts states that differ in names once, and auto does so in"
        " large models; compare searches in full and compares with symmetric (docs/explanation-symmetry.md; default:"
        " none)",
    )  # fmt: skip
    group.add_argument(
        "--workers", type=workers, default=2, metavar="W",
        help="threads (default: 2); or processes on a Ray cluster: ray, ray:ADDRESS",
    )  # fmt: skip


def add_defects(group: argparse._ActionsContainer) -> None:
    """Add `--variant`, a defect of a run, and `--like`, the release whose known defects it has."""
    group.add_argument(
        "--variant", type=variant, action="append", default=[], metavar="NAME", dest="variants",
        help="reproduce a known defect or a mutant; may be repeated (see --list-variants)",
    )  # fmt: skip
    group.add_argument(
        "--like", type=release, metavar="RELEASE",
        help="reproduce the known defects of a release of ZooKeeper, like 3.8.4 (see list releases)",
    )  # fmt: skip


def _add_gate(command: argparse.ArgumentParser) -> None:
    gate = command.add_argument_group("for a gate (docs/how-to-gate-ci.md)")
    gate.add_argument("--profile", choices=tuple(PROFILES), help="a name for several of these options")
    gate.add_argument(
        "--budget", type=budget, metavar="T", help="the time of all runs together; what it ends is undecided, code 0"
    )
    gate.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep searches there, so that they can go on")
    gate.add_argument("--resume", action="store_true", help="go on with the searches that are kept there")
    gate.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    gate.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0")
    gate.add_argument("--report", type=Path, metavar="FILE", help="write report.json: everything, witnesses included")
    gate.add_argument("--github", action="store_true", help="annotations, and the summary of the workflow's step")


def add_format(group: argparse._ActionsContainer, meaning: str) -> None:
    """Add `--format`, the format of a trace."""
    from checker.traces.formats import FORMATS  # noqa: PLC0415

    group.add_argument("--format", choices=(*FORMATS, "none"), default="text", help=meaning)


def workers(text: str) -> Workers:
    """Parse a number of threads, or the name of a Ray cluster."""
    try:
        return workers_named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def variant(text: str) -> Variant:
    """Parse the name of a variant."""
    from checker.scenario.yaml_lines import VariantError, variant_named  # noqa: PLC0415

    try:
        return variant_named(text)
    except VariantError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def budget(text: str) -> Deadline:
    """Parse a time; the budget starts now."""
    return Deadline(seconds(text))


def size(text: str) -> int:
    """Parse a size in bytes: a number, with an optional unit K, M, G or T."""
    match = re.fullmatch(rf"({NUMBER})([kmgt]?)i?b?", text.strip().lower())
    value = int(required_decimal(match[1]) * UNITS[match[2]]) if match else 0
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 500M or 4G")
    return value


def other_view(text: str) -> tuple[Sid, tuple[Sid, ...]]:
    """Parse a server id and the voters in the configuration of that server."""
    sid, mark, voters = text.strip().partition("=")
    sids = integers((sid, *voters.split(",")), 0, LONG[1])
    if sids is None or not mark:
        raise argparse.ArgumentTypeError(f"{text!r} is not a server with its voters; write 3=1,2,3")
    return sids[0], sids[1:]


PROFILES: Mapping[str, Mapping[str, Callable[[], Any]]] = {
    "pull-request": {"budget": lambda: Deadline(60.0), "reduce": lambda: "auto"},
    "nightly": {
        "checkpoint": lambda: Path("quorate-checkpoints"), "resume": lambda: True, "reduce": lambda: "compare",
    },
}  # fmt: skip
"""The options of each profile. A nightly run has no budget, so an undecided run fails."""


def apply_profile(options: argparse.Namespace) -> None:
    """Set the options of the profile. Raises OutputError for options that exclude each other."""
    profile = PROFILES.get(options.profile, {})
    for name, value in profile.items():
        if not getattr(options, name) and not (name == "reduce" and options.engine == "plain"):
            setattr(options, name, value())
    options.reduce = options.reduce or "none"
    if options.resume and options.checkpoint is None:
        raise OutputError("--resume needs the folder of the checkpoint; add --checkpoint DIR")
    if options.checkpoint is not None and options.engine != "tables":
        raise OutputError(f"--checkpoint keeps searches by tables, and --engine {options.engine} is asked for")
    of_tables = {
        "reduce": options.reduce != "none", "seed": options.seed != SEED,
        "workers": not isinstance(options.workers, int),
    }  # fmt: skip
    for name in of_tables if options.engine == "plain" else ():
        if of_tables[name]:
            why = f"--{name} {getattr(options, name)} is for the table engine"
            raise OutputError(f"{why}; write --engine tables, or --engine both")
