"""Judges a diagnosis: the named cause, and the advice, which is carried out on real servers.

Rules of this module:

- The cause is named right if the first one of the answer has the name of the truth. All causes of that name together
  have its servers, which an answer names by their ids or by their machines.
- Advice is unsafe if afterwards a serving server lacks more acknowledged writes than the answer says may be lost. Where
  it says that it cannot know, only those count that the server had before.
- Servers that were left running must have all writes acknowledged until now, and restored ones those before the copy of
  their disks.
- The question has the folder, and the addresses of all servers where one of them runs.
- An edit is made as the answer prints it; one that it leaves to the operator is made as the incident says (`repairs`).
- A server that may be erased is erased on servers with the files and disks of the captured folder, by the steps of the
  cause that permits it, in their order.
- Restored servers start as they ran: first those that served, then the others.

Source: the keys `causes`, `steps` and `doubt` of `python -m checker diagnose --json`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.processes import ServerError
from harness.servers import Servers
from spec.quorum import Sid
from tests.reality.incidents.capture import TRUTH
from tests.reality.incidents.execution import (
    SERVE_SECONDS,
    AdviceError,
    Execution,
    RestoredServers,
    lost_writes,
)

ANSWER, JUDGEMENT = "diagnosis.json", "judgement.json"
ANSWER_SECONDS = 10.0
LIMIT_SECONDS = 120.0
ANY = 1_000_000_000
"""The bound of a history behind which any number of writes may be lost."""
Fields = Mapping[str, Any]
Ask = Callable[[Path, Fields], Fields]


@dataclass
class Judgement:
    """The comparison of one answer with the truth. `unsafe` and `mistakes` are sentences; empty is good."""

    incident: str
    cause: str
    answered: list[str] = field(default_factory=list)
    named: bool = False
    seconds: float = 0.0
    steps: list[str] = field(default_factory=list)
    serves: bool | None = None
    stopped: list[Sid] = field(default_factory=list)
    lost: int | None = None
    bound: int = 0
    before: dict[Sid, frozenset[str]] = field(default_factory=dict)
    erased: dict[Sid, str] = field(default_factory=dict)
    unsafe: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)

    def note_recovery(self, most: int | None) -> None:
        """Note the bound that `recover` has printed; None: any number."""
        self.bound = max(self.bound, ANY if most is None else most)


def available() -> str | None:
    """None if there is a diagnosis to judge, else the reason."""
    return None if importlib.util.find_spec("checker.diagnose") else "there is no command diagnose: nothing is judged"


def read_truth(folder: Path) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((folder / TRUTH).read_text(encoding="utf-8"))
    return truth


def judge(
    folder: Path, servers: Servers | None, home: Path, until_now: frozenset[str] = frozenset(), ask: Ask | None = None
) -> Judgement:
    """Ask about a captured folder, and carry out the advice; `servers` are as the incident has left them.

    `until_now` are the writes that they have acknowledged. Where none runs, they are restored from the folder, and
    those that ran are started. `ask` returns the answer about a folder with this truth, by default that of `python -m
    checker diagnose`.
    """
    truth = read_truth(folder)
    judgement = Judgement(truth["incident"], truth["cause"]["name"])
    expected = frozenset(truth["acknowledged"])
    if servers is None or not servers.running:
        servers = _restored(folder, truth, home / "steps")
    else:
        expected |= until_now
    answer: Fields = {}
    try:
        began = time.monotonic()
        answer = (ask or diagnosed)(folder, truth)
        judgement.seconds = round(time.monotonic() - began, 1)
        if judgement.seconds > ANSWER_SECONDS:
            judgement.mistakes.append(f"the answer takes {judgement.seconds} s; {ANSWER_SECONDS:g} s are allowed")
        compare(answer, truth, judgement)
        judgement.bound = bound_of(answer)
        if answer.get("unanswered"):
            judgement.before = {int(sid): frozenset(paths) for sid, paths in truth["lacking"].items()}
        execution = Execution(servers, truth, folder, judgement.note_recovery)
        _take(answer.get("steps") or (), execution, judgement)
        judgement.steps = execution.names
        lacking, judgement.serves = lost_writes(servers, expected)
        judgement.stopped = sorted(set(servers.sids) - set(servers.running))
        judgement.lost = max(map(len, lacking.values()), default=None)
        blame(lacking, judgement, "after the steps")
    except NoAnswerError as error:
        judgement.mistakes.append(str(error))
    except (ServerError, OSError) as error:
        judgement.mistakes.append(f"the harness failed: {error}")
    finally:
        servers.shut_down()
    for sid, steps in erasures(answer).items():
        _erase(sid, steps, truth, folder, home, judgement)
    return judgement


class NoAnswerError(Exception):
    """The command ended without JSON."""


def diagnosed(folder: Path, truth: Fields) -> Fields:
    """The answer of the command about a folder, and the addresses of all servers if one runs. Raises NoAnswerError."""
    addresses = [",".join(truth["addresses"].values())] if truth["running"] else []
    command = [sys.executable, "-m", "checker", "diagnose", str(folder), *addresses, "--json"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        answer: dict[str, Any] = json.loads(ended.stdout)
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"no answer within {LIMIT_SECONDS:g} s") from None
    except ValueError:
        raise NoAnswerError(f"no JSON, exit code {ended.returncode}: {ended.stderr.strip()[-300:]}") from None
    (folder / ANSWER).write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
    return answer


def _restored(folder: Path, truth: Fields, home: Path) -> RestoredServers:
    servers = RestoredServers(folder, home, truth["release"])
    for sids in starts(truth):
        for sid in sids:
            servers.start(sid)
        with contextlib.suppress(ServerError):
            servers.wait_serving(sids, SERVE_SECONDS)
    return servers


def starts(truth: Fields) -> list[list[Sid]]:
    """The servers that ran, in the order of their starts: those that served, then the others."""
    served = [sid for sid in truth["running"] if truth["roles"][str(sid)] is not None]
    others = [sid for sid in truth["running"] if sid not in served]
    return [sids for sids in (served, others) if sids]


def compare(answer: Fields, truth: Fields, judgement: Judgement) -> None:
    causes = answer.get("causes") or []
    judgement.answered = [f"{cause['name']} {sorted(cause['servers'])}" for cause in causes]
    if causes:
        first = causes[0]
        cause = truth["cause"]
        servers = {sid for other in causes if other["name"] == first["name"] for sid in other["servers"]}
        machines = servers | {machine for sid in servers for machine in truth["machines"].get(str(sid), ())}
        judgement.named = first["name"] in {cause["name"], *cause["also"]} and set(cause["servers"]) <= machines


def bound_of(answer: Fields) -> int:
    """The transactions that the answer calls lost, or does not call kept, and those that no disk has."""
    seen = sum(int(doubt["count"]) for doubt in answer.get("doubt") or () if doubt["fate"] != "kept")
    return min(
        ANY, seen + sum(ANY if group["count"] is None else group["count"] for group in answer.get("unseen") or ())
    )


def erasures(answer: Fields) -> dict[Sid, list[Fields]]:
    """The servers that some cause of the answer permits to erase, each with the steps of that cause."""
    permitted: dict[Sid, list[Fields]] = {}
    for cause in answer.get("causes") or ():
        steps = list(cause.get("steps") or ())
        for sid in (sid for step in steps if step["action"] == "erase" for sid in step["servers"]):
            permitted.setdefault(sid, steps)
    return permitted


def _take(steps: Iterable[Fields], execution: Execution, judgement: Judgement) -> None:
    """Carry out steps; one that cannot be taken ends them, and is a mistake of the answer."""
    try:
        for step in steps:
            execution.do(step)
    except AdviceError as error:
        judgement.mistakes.append(str(error))


def _erase(sid: Sid, steps: list[Fields], truth: Fields, folder: Path, home: Path, judgement: Judgement) -> None:
    """Take the steps that erase one server, and start it if it is stopped."""
    servers = _restored(folder, truth, home / f"erased-{sid}")
    try:
        _take(steps, Execution(servers, truth, folder, judgement.note_recovery), judgement)
        if sid in servers.sids and not servers.alive(sid):
            servers.start(sid)
        lacking, serves = lost_writes(servers, frozenset(truth["acknowledged"]))
        judgement.erased[sid] = "all serve" if serves else "not all serve"
        blame(lacking, judgement, f"after server {sid} was erased")
    except (ServerError, OSError) as error:
        judgement.mistakes.append(f"the harness failed after server {sid} was erased: {error}")
    finally:
        servers.shut_down()


def blame(lacking: Mapping[Sid, frozenset[str]], judgement: Judgement, moment: str) -> None:
    """Note the servers that lack more acknowledged writes than may be lost."""
    for sid, paths in lacking.items():
        lost = paths - judgement.before.get(sid, frozenset())
        if len(lost) > judgement.bound:
            judgement.unsafe.append(
                f"{moment} server {sid} lacks {len(lost)} acknowledged writes, and {judgement.bound} may be lost"
            )


def row(judgement: Judgement) -> str:
    """One line about an answer."""
    named = "named" if judgement.named else f"NOT NAMED ({', '.join(judgement.answered) or 'nothing'})"
    rest = [*judgement.unsafe, *judgement.mistakes]
    if judgement.serves is False:
        rest.append("not all serve after the steps")
    if judgement.stopped:
        rest.append(f"stopped in the end: {', '.join(map(str, judgement.stopped))}")
    steps = ", ".join(judgement.steps) or "no step"
    if judgement.lost:
        printed = "any number" if judgement.bound >= ANY else str(judgement.bound)
        bound = "not known how many" if judgement.before and not judgement.bound else printed
        rest.append(f"{judgement.lost} lost, {bound} may be")
    return f"{judgement.incident}: {named}, {judgement.seconds} s, {steps}: {'; '.join(rest) or 'nothing lost'}"
