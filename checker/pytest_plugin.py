"""A plugin for pytest: a scenario is a test, and a failure shows the run that was found.

A YAML file is collected if it is named on the command line, or matches one of the globs of the ini option
`quorate_scenarios`, relative to the root folder of pytest. No other file is read. The test passes if the scenario has
its expected verdict (or passes, if it expects nothing). The ini option `quorate_models` names models in Python files,
each as FILE.py:NAME or FILE.py:NAME(ARGUMENTS); each is a test as well, which passes if the verdict does.

Rules of this module:

- A scenario is read when its test runs. So a scenario with a mistake fails alone, with one line that names the place.
- A scenario that the budget ends is skipped as undecided: it is neither a success nor a failure.
- A budget is shared without communication between processes (pytest-xdist). Each test adds an equal part of it to the
  process that it runs in, and may also use the time that earlier tests in that process left over. It always has at
  least its own part.
- No module of the checker is imported before there is a scenario to run.
"""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from spec.text import on_a_line, on_lines

if TYPE_CHECKING:
    from checker.report.verdict import RunOutcome

SCENARIOS, MODELS, OPTIONS, BUDGET = "quorate_scenarios", "quorate_models", "quorate_options", "--quorate-budget"
SUFFIXES = (".yaml", ".yml")
_FILES = pytest.StashKey[set[Path]]()  # files that are tests, if they are YAML
_MODELS = pytest.StashKey[dict[Path, list[str]]]()  # the models that are tests, by their files
_HOW: pytest.StashKey[_RunOptions] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line and of the ini file."""
    group = parser.getgroup("quorate", "scenarios of the model checker")
    group.addoption(BUDGET, metavar="T", help="the time of all scenarios, such as 60s; what it ends is skipped")
    parser.addini(SCENARIOS, "globs of the scenario files that are tests, seen from the root folder", "args", [])
    parser.addini(MODELS, "models that are tests, as FILE.py:NAME, seen from the root folder", "linelist", [])
    parser.addini(OPTIONS, "how scenarios are explored, as options of quorate run", "args", [])


def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the files that are tests. Raises pytest.UsageError for an invalid glob, or an invalid name of a model."""
    config = session.config
    globs: list[str] = config.getini(SCENARIOS)
    try:
        paths = {path for glob in globs for path in config.rootpath.glob(glob)}
    except (NotImplementedError, ValueError) as error:
        raise pytest.UsageError(f"{SCENARIOS}: {error}; write globs like tests/scenarios/*.yaml") from None
    # `isinitpath` cannot be used: it misses a file that is named together with a folder that contains it.
    words = [word.partition("::")[0] for word in config.args]
    config.stash[_MODELS] = _models(config)
    config.stash[_FILES] = paths | {Path(os.path.abspath(config.invocation_params.dir / word)) for word in words}  # noqa: PTH100


def _models(config: pytest.Config) -> dict[Path, list[str]]:
    """The models of the ini file by their files. Raises pytest.UsageError."""
    models: dict[Path, list[str]] = {}
    for line in config.getini(MODELS):
        file, colon, name = line.rpartition(".py:")
        if not (file and colon and name):
            raise pytest.UsageError(f"{MODELS}: {line!r} is not a model; write FILE.py:NAME or FILE.py:NAME(ARGUMENTS)")
        models.setdefault(config.rootpath / f"{file}.py", []).append(name)
    return models


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a scenario file that is named, or that matches a glob; or a Python file with models."""
    if file_path in parent.config.stash[_MODELS]:
        return ModelFile.from_parent(parent, path=file_path)
    if file_path.suffix in SUFFIXES and file_path in parent.config.stash[_FILES]:
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Read the options, now that the number of scenarios is known; without scenarios, read none."""
    count = sum(isinstance(item, ScenarioItem) for item in session.items)
    if count:
        session.config.stash[_HOW] = _how(session.config, count)


@dataclass
class _RunOptions:
    options: argparse.Namespace
    part: float | None
    left: float = 0.0
    compiled: bool = False


def _how(config: pytest.Config, count: int) -> _RunOptions:
    """Read the options. Raises pytest.UsageError for invalid ones."""
    from checker.cli.options import add_limits  # noqa: PLC0415
    from checker.command import seconds  # noqa: PLC0415

    parser = _Parser(prog=OPTIONS, add_help=False, allow_abbrev=False)
    add_limits(parser)
    options = parser.parse_args(config.getini(OPTIONS), argparse.Namespace(verdict=False, checkpoint=None))
    budget = config.getoption(BUDGET)
    if budget is None:
        return _RunOptions(options, None)
    try:
        return _RunOptions(options, seconds(budget) / count)
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"{BUDGET}: {error}") from None


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are those of pytest."""

    def error(self, message: str) -> NoReturn:
        raise pytest.UsageError(f"{OPTIONS}: {message}")


class ScenarioFile(pytest.File):
    """A file with a scenario: one test, with the name of the scenario."""

    def collect(self) -> Iterator[ScenarioItem]:
        """The test, also of a file that cannot be read: the test then reports the error."""
        yield ScenarioItem.from_parent(self, name=_name(self.path))


class ModelFile(pytest.File):
    """A Python file with models: one test for each, with the name of the model in the file."""

    def collect(self) -> Iterator[ScenarioItem]:
        """The tests. The file is imported when they run."""
        for name in self.config.stash[_MODELS][self.path]:
            item = ScenarioItem.from_parent(self, name=name)
            item.source = Path(f"{self.path}:{name}")
            yield item


def _name(path: Path) -> str:
    """The name of a scenario, else that of its file, as a part of a test's id, which is one line without `::`."""
    from checker.scenario.yaml_lines import ScenarioError, read_yaml  # noqa: PLC0415
    from checker.user_files import SCENARIO, TooLargeError, read_bytes  # noqa: PLC0415

    try:
        value = read_yaml(read_bytes(path, SCENARIO).decode("utf-8"), path.name).value
    except (OSError, ValueError, ScenarioError, TooLargeError):
        value = None
    name = value.get("name") if isinstance(value, dict) else None
    words = " ".join(str(name or path.stem).replace("::", ":").split())
    return on_a_line(words)


class UnexpectedError(Exception):
    """A scenario without its expected verdict; the message is the one that pytest shows."""


class ScenarioItem(pytest.Item):
    """A scenario or a model as a test. `source` is its path as on the command line of `quorate run`."""

    source: Path | None = None

    def runtest(self) -> None:
        """Explore the scenario. Raises UnexpectedError, or skips a scenario that the budget ended."""
        from checker.cli.runner import with_traces  # noqa: PLC0415
        from checker.engine.model import ModelError  # noqa: PLC0415
        from checker.report.ci_reports import figures  # noqa: PLC0415

        outcome = self._outcome(self.config.stash[_HOW])
        self.user_properties += figures(outcome)
        if outcome.interrupted:
            raise KeyboardInterrupt
        if outcome.judgement.undecided:
            pytest.skip(f"{_seen_from(self.path, self.config)}: undecided: {outcome.judgement.reasons[0]}")
        if outcome.judgement.exit_code:
            try:
                text = _failure_text(with_traces(outcome), self.source or self.path, self.config)
            except ModelError as error:  # in a function that only traces call
                text = str(error)
            raise UnexpectedError(text)

    def _outcome(self, how: _RunOptions) -> RunOutcome:
        from checker.cli.runner import load_kernels, outcome_of  # noqa: PLC0415
        from checker.cli.sources import RunRequest, load_request  # noqa: PLC0415
        from checker.scenario import VariantError  # noqa: PLC0415

        try:
            request = load_request(self.source or self.path, how.options.variants, how.options.like)
        except VariantError as error:
            raise UnexpectedError(str(error)) from None
        if how.part is None:
            return outcome_of(request, how.options)
        if isinstance(request, RunRequest) and not how.compiled:
            load_kernels(request.job, how.options)
            how.compiled = True
        how.left += how.part
        began = time.monotonic()
        outcome = outcome_of(request, how.options, max(how.left, how.part))
        how.left -= time.monotonic() - began
        return outcome

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text of a failure, without a stack trace for any error that a scenario can cause."""
        if isinstance(excinfo.value, UnexpectedError):
            return on_lines(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The place of the test."""
        return self.path, 0, self.name


def _failure_text(outcome: RunOutcome, source: Path, config: pytest.Config) -> str:
    from checker.report.ci_reports import sentence  # noqa: PLC0415
    from checker.report.verdict import location_of  # noqa: PLC0415
    from checker.traces.formats import FORMATS  # noqa: PLC0415

    if outcome.job is None:
        return outcome.judgement.sentence
    place = location_of(outcome, outcome.findings[0].prop if outcome.findings else None)
    again = shlex.join(["quorate", "run", _seen_from(source, config), *config.getini(OPTIONS)])
    lines = [sentence(outcome), f"{place.file}:{place.line}: {outcome.name}" if place else outcome.name]
    lines += [f"also {reason}" for reason in outcome.judgement.reasons[1:]]
    lines += [f"run it again: {again}"]
    if outcome.findings:
        lines += ["keep its trace: add --traces DIR; quorate replay executes what is there"]
    return "\n\n".join(["\n".join(lines), *(FORMATS["text"].view(trace).rstrip() for trace in outcome.findings)])


def _seen_from(path: Path, config: pytest.Config) -> str:
    """A path relative to the folder that pytest was started in."""
    return os.path.relpath(path, config.invocation_params.dir)
