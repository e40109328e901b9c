"""The planner as an operator meets it: the command line, its exit code, its JSON, and the commands that it prints.

Rules of this module:

- A wait is the printed command, read and not guessed: host, port, and the roles that it looks for.
- The files of a stage are those that `--stages` writes.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spec.quorum import Sid
from tests.reality.states import write_folder

BUDGET = "20s"
LIMIT_SECONDS = 300
PASSED, CRASHED, UNSAFE, STALLS, UNDECIDED, ONLY_IN_STAGES, REFUSED = 0, 1, 12, 13, 20, 22, 151
SAFE = (PASSED, ONLY_IN_STAGES)
_STAGE = re.compile(r"### Stage (\d+)")
_STEP = re.compile(r"\*\*(?:Start|Restart|Stop) server (\d+)")
_FUNCTION = re.compile(r"serves\w*\(\) \{.*\}$")
_CALL = re.compile(r"`(serves\w* [^`]+)`|^(serves\w* .+)$")
_END = re.compile(r"## (?:If a step fails|The way back|Other ways|Ways to do it)")


@dataclass
class Waits:
    """The printed commands that wait: functions to paste once, and the calls of steps and of a list after all steps."""

    functions: list[str] = field(default_factory=list)
    calls: dict[tuple[int, Sid], str] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)

    def command(self, call: str) -> str:
        """The text that an operator types."""
        return "\n".join([*self.functions, call])

    def of(self, stage: int, sid: Sid) -> str | None:
        """The call for a server in a stage: an answer shows it once."""
        return next((self.calls[at, sid] for at in range(stage, 0, -1) if (at, sid) in self.calls), None)


@dataclass
class Answer:
    """The answer of the planner; `data` is empty if it refused its input."""

    code: int
    data: dict[str, Any]
    text: str
    errors: str
    folder: Path
    seconds: float
    waits: Waits = field(default_factory=Waits)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The stages of the recommendation: the change in one go, or its parts."""
        return list(self.data["stages"] or [self.data["direct"]])

    def shown(self, number: int) -> list[dict[str, Any]]:
        """The order of a stage whose steps are printed one by one, if it has steps."""
        return [order for order in self.parts[number]["orders"][:1] if order["steps"]]

    def files_of(self, number: int) -> dict[Sid, str]:
        """The files after a stage; the first is 1."""
        return {
            int(place.parent.name): place.read_text(encoding="utf-8")
            for place in sorted((self.folder / f"stage-{number}").glob("*/zoo.cfg"))
        }

    @property
    def verdict(self) -> str:
        """The verdict in one word, and the exit code."""
        return f"{self.data['verdict'] if self.data else 'refused'} ({self.code})"

    @property
    def verdict_with_disks(self) -> str:
        """The verdict if servers that move have their disks with them; empty without an answer."""
        return str(self.data.get("verdict_with_disks", ""))


def ask(
    old: dict[Sid, str],
    new: dict[Sid, str],
    folder: Path,
    *options: str,
    now: dict[Sid, str] | None = None,
    addresses: Collection[str] = (),
) -> Answer:
    """Ask about two states, written below `folder`, and about the state between them if an operator was interrupted.

    `addresses` are the client ports of the servers of that state.
    """
    states = {"old": old, "new": new} | ({} if now is None else {"now": now})
    for name, texts in states.items():
        write_folder(folder / name, texts)
    command = [sys.executable, "-m", "checker", "rollout", "--from", str(folder / "old"), "--to", str(folder / "new")]
    command += [] if now is None else ["--now", str(folder / "now"), *addresses]
    command += ["--json", "--output", str(folder / "plan.md"), "--stages", str(folder), "--budget", BUDGET, *options]
    began = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    seconds = time.monotonic() - began
    (folder / "command").write_text(" ".join(command) + "\n", encoding="utf-8")
    read = ended.returncode in (PASSED, UNSAFE, STALLS, UNDECIDED, ONLY_IN_STAGES)
    text = (folder / "plan.md").read_text(encoding="utf-8") if read else ""
    data = json.loads(ended.stdout) if read else {}
    return Answer(ended.returncode, data, text, ended.stderr.strip(), folder, seconds, waits_in(text))


def waits_in(text: str) -> Waits:
    """The commands that wait, as an answer prints them with its steps."""
    waits = Waits()
    stage, sid = 1, 0
    for line in text.splitlines():
        if _END.match(line):
            break
        if head := _STAGE.match(line):
            stage = int(head[1])
        if step := _STEP.search(line):
            sid = int(step[1])
        if _FUNCTION.match(line):
            waits.functions.append(line)
        elif call := _CALL.search(line):
            if call[2]:
                waits.last.append(call[2])
            else:
                waits.calls.setdefault((stage, sid), call[1])
    return waits
