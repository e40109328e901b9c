"""`python -m checker`: chooses the command, and sees that whatever is wrong ends as one message and the right code.

No stack trace reaches a user for anything that a command line, a scenario, a configuration file or a saved trace
can do; a defect of the program itself is not hidden.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from checker.cli import options as cli
from checker.cli.output import unread_output_discarded
from checker.report.verdict import ExitCode
from spec.config import ConfigError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default this process's own; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to fail
    with unread_output_discarded():
        return _answered(given)
    return int(ExitCode.PASSED)  # the reader left before there was a verdict to speak of


def _answered(given: list[str]) -> int:
    """Run a command line, and see that what is wrong with its files, or an interrupt, ends as a message."""
    try:
        return _command(given)
    except SystemExit as end:  # argparse has printed what was wrong
        return end.code if isinstance(end.code, int) else int(ExitCode.COMMAND_LINE)
    except ConfigError as error:
        return _refused(str(error), ExitCode.CONFIGURATION)
    except KeyboardInterrupt:
        return _refused("interrupted before there was anything to report", ExitCode.INCOMPLETE)


def _command(given: list[str]) -> int:
    commands = cli.command_parsers()
    if given and given[0] in commands:
        return _COMMANDS[given[0]](commands[given[0]].parse_args(given[1:]))
    if given and not given[0].startswith("-"):
        from checker.scenario.errors import nearest  # noqa: PLC0415

        return _refused(f"there is no command {given[0]!r}; {nearest(given[0], commands)}", ExitCode.COMMAND_LINE)
    return _nodes(cli.parser().parse_args(given))


def _refused(message: str, code: ExitCode) -> int:
    print(f"error: {message}", file=sys.stderr)
    return int(code)


def _nodes(options: argparse.Namespace) -> int:
    from checker.cli.nodes import NodesError, jobs  # noqa: PLC0415
    from checker.cli.runner import OutputError, run_all  # noqa: PLC0415

    if options.list_variants:
        return _variants(options)
    try:
        return run_all(jobs(options), options)
    except (NodesError, OutputError) as error:
        return _refused(str(error), ExitCode.COMMAND_LINE)


def _run(options: argparse.Namespace) -> int:
    from checker.cli.runner import OutputError, run_all  # noqa: PLC0415
    from checker.scenario import ScenarioError, VariantError, bundled, load  # noqa: PLC0415

    try:
        return run_all([load(path, options.variants) for path in options.files or bundled()], options)
    except ScenarioError as error:
        return _refused(str(error), ExitCode.SCENARIO)
    except (OutputError, VariantError) as error:
        return _refused(str(error), ExitCode.COMMAND_LINE)


def _replay(options: argparse.Namespace) -> int:
    from checker.cli.runner import VIEWS  # noqa: PLC0415
    from checker.cli.sources import SourceError, job_of  # noqa: PLC0415
    from checker.traces import ReplayError, TraceFileError, read_itf, replay  # noqa: PLC0415

    try:
        text = options.file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        return _refused(f"{options.file}: it cannot be read ({error}); name a saved trace", ExitCode.SCENARIO)
    try:
        trace = read_itf(text, str(options.file))
        replayed = replay(trace, job_of(trace.source))
    except (TraceFileError, SourceError, ReplayError) as error:
        return _refused(str(error), ExitCode.SCENARIO)
    if options.format != "none":
        print(VIEWS[options.format](replayed.trace))
        print()
    print(f"replayed: {replayed.trace.depth} steps, and {replayed.trace.prop} again: {replayed.trace.clause}")
    if replayed.trace.kind.is_liveness:
        print("\n".join(f"verified: {seen}" for seen in replayed.verified))
    return int(ExitCode.PASSED)


def _validate(options: argparse.Namespace) -> int:
    from checker.validate.command import validate_command  # noqa: PLC0415

    return validate_command(options.files, as_json=options.json)


def _history(options: argparse.Namespace) -> int:
    from checker.histories import HistoryError  # noqa: PLC0415
    from checker.histories.report import judged  # noqa: PLC0415

    try:
        found = judged(options.files)
    except HistoryError as error:
        return _refused(str(error), ExitCode.SCENARIO)
    with unread_output_discarded():
        print(json.dumps(found.data) if options.json else found.text)
    return int(found.exit_code)


def _quorums(options: argparse.Namespace) -> int:
    from checker.symbolic.report import quorums_command  # noqa: PLC0415

    answer = quorums_command(options.files)
    failed = answer.exit_code in (ExitCode.CONFIGURATION, ExitCode.COMMAND_LINE)
    with unread_output_discarded():
        if options.json:
            print(json.dumps(answer.data))
        else:
            print(answer.text, file=sys.stderr if failed else sys.stdout)
    return answer.exit_code


def _tables(options: argparse.Namespace) -> int:
    from checker.cli.tables import report  # noqa: PLC0415

    text, data = report()
    print(json.dumps(data) if options.json else text)
    return int(ExitCode.PASSED)


def _proofs(_: argparse.Namespace) -> int:
    from checker.symbolic import every_proof, vote_order_lines  # noqa: PLC0415
    from checker.symbolic.proofs import Proved  # noqa: PLC0415

    proofs = every_proof()
    with unread_output_discarded():
        for proof in proofs:
            print(f"{type(proof).__name__.lower()}: {proof.statement}")
        print("\n".join(line for line in vote_order_lines() if not line.startswith("proved: ")))
    return int(ExitCode.PASSED if all(isinstance(proof, Proved) for proof in proofs) else ExitCode.SAFETY)


def _variants(options: argparse.Namespace) -> int:
    from checker.cli.variants import report  # noqa: PLC0415

    text, data = report()
    print(json.dumps(data) if options.json else text)
    return int(ExitCode.PASSED)


def _list(_: argparse.Namespace) -> int:
    from checker.properties import PROPERTIES  # noqa: PLC0415
    from checker.properties.recipes import RECIPE_PROPERTIES  # noqa: PLC0415
    from checker.properties.service import SERVICE_PROPERTIES  # noqa: PLC0415
    from checker.scenario import bundled, load  # noqa: PLC0415

    print("scenarios")
    width = max(len(path.stem) for path in bundled())
    for path in bundled():
        job = load(path)
        expected = job.expected.value if job.expected else ""
        print(f"  {path.stem:<{width}}  {job.grain:<6}  {expected:<8}  {job.name}")
    registries: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("ensembles", PROPERTIES),
        ("a service", SERVICE_PROPERTIES),
        ("recipes", RECIPE_PROPERTIES),
    )
    for what, registry in registries:
        print(f"properties of {what}")
        width = max(map(len, registry))
        for name, entry in registry.items():
            print(f"  {name:<{width}}  {entry.kind.value:<11}  {entry.meaning}")
    return int(ExitCode.PASSED)


_COMMANDS = {
    "run": _run,
    "replay": _replay,
    "validate": _validate,
    "history": _history,
    "quorums": _quorums,
    "proofs": _proofs,
    "tables": _tables,
    "list": _list,
}
