"""Carries out a change on real servers as the planner says, under writes, and compares its verdict with what happens.

Rules of this module:

- A verdict is decided by what servers do: every wait ends, every server serves in the end and takes a write, and every
  acknowledged write is at every server, created by the same transaction.
- SAFE agrees with all of it. STALLS agrees with a wait that does not end, or a server that does not serve in the end.
  A file that is refused agrees with servers that do not all serve when they start with it, over empty disks.
- A server that moves has its disk with it here, so the verdict is that with disks that are moved.
- UNSAFE is tried where the danger shows without faults and late messages. Else it is *not tried*, and never agrees.
- After an interruption `--now` must call a plan safe that was safe, with the steps that are left in their order.
"""

import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from harness.follow.result import Acknowledgements
from harness.processes import Place, ServerError, wait_until
from harness.record.ensemble import CREATE, LOAD, WORLD, WriteClient
from harness.record.ensemble import Plan as LoadPlan
from spec.quorum import Sid
from tests.reality.changes import Change, Route
from tests.reality.planner import REFUSED, SAFE, UNDECIDED, Answer, ask
from tests.reality.servers import RealServers, client_place, key_of, make_certificates
from tests.reality.shell import shell
from tests.reality.states import filled, network_of

START_SECONDS = 60.0
WAIT_SECONDS = 45.0
STALL_SECONDS = 25.0
QUIET_SECONDS = 0.5
CLIENTS, PAUSE = 3, 0.02
NO_NODE = -101
Texts = dict[Sid, str]
INPUT_REFUSED = re.compile(r"was server \d+ and becomes server|has the address of server \d+, which")
CONDITION = "the class must be on the class path"


class Outcome(Enum):
    """The comparison of a verdict with what happened."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    UNDECIDED = "not decided by the planner"
    NOT_TRIED = "not tried"
    FAILED = "the harness failed"


@dataclass
class Comparison:
    """The result of one change."""

    outcome: Outcome = Outcome.FAILED
    verdict: str = ""
    reason: str = ""
    acknowledged: int = 0
    steps: list[str] = field(default_factory=list)
    planner_seconds: float = 0.0


class StallError(Exception):
    """A wait that does not end, or a server that does not serve in the end."""


class LossError(Exception):
    """An acknowledged write that a server lacks, or servers with different writes."""


class ContradictionError(Exception):
    """An answer that contradicts an earlier answer of the planner."""


class _Ended(Exception):  # noqa: N818 - it is no error
    """The comparison is settled before the steps, or instead of them."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


class Driver:
    """Carries out one change below `home`."""

    def __init__(self, change: Change, home: Path, release: str) -> None:
        self._change, self._home = change, home
        self._servers = RealServers(home / "data", release)
        self._network = network = network_of(os.getpid())
        self._old, self._new = (
            {sid: filled(text, home / "data", network) for sid, text in state.texts().items()}
            for state in (change.old, change.new)
        )
        self._witness = Acknowledgements()
        self._clients: list[WriteClient] = []
        self._result = Comparison()
        self._asked = 0
        self._limit = WAIT_SECONDS
        self._other_order = ""

    def compare(self) -> Comparison:
        result = self._result
        try:
            if self._change.tls:
                hosts = [f"{self._network}.{number}" for number in range(1, 10)]
                make_certificates(self._home / "data" / "tls", hosts)
                shutil.copy(self._home / "data" / "tls" / "store.pem", self._home / "CLIENT.pem")
            result.outcome, result.reason = self._compare()
        except _Ended as ended:
            result.outcome, result.reason = ended.outcome, str(ended)
        except ContradictionError as error:
            result.outcome, result.reason = Outcome.DISAGREES, str(error)
        except (ServerError, OSError) as error:
            result.outcome, result.reason = Outcome.FAILED, str(error)
        finally:
            self._stop_clients()
            self._servers.shut_down()
        result.acknowledged = len(self._witness.replies)
        return result

    # --- verdicts

    def _compare(self) -> tuple[Outcome, str]:
        leader = self._named_leader()
        answer = self._ask(self._old, self._new, *self._options(leader))
        self._result.verdict = answer.verdict
        if answer.code == REFUSED:
            return self._refused(answer)
        if answer.code == UNDECIDED:
            return Outcome.UNDECIDED, answer.data["recommendation"]
        verdict = answer.verdict_with_disks
        if verdict == "unsafe":
            if not self._change.provoked:
                return (
                    Outcome.NOT_TRIED,
                    f"the danger depends on a fault or on an order: {answer.data['recommendation']}",
                )
            return self._unsafe(answer, leader)
        if verdict == "stalls":
            return self._stalls(answer, leader)
        if verdict == "safe":
            return self._safe(answer, leader)
        return Outcome.DISAGREES, f"the planner ended with code {answer.code}: {answer.errors[-300:]}"

    def _named_leader(self) -> Sid | None:
        """The server that is named to the planner as the leader, if one is: that which leads a first half of voters."""
        voters = self._change.old.voters
        if not self._change.names_leader or len(voters) < 3 or "group.1" in self._change.old.keys:
            return None
        return voters[len(voters) // 2]

    def _options(self, leader: Sid | None) -> list[str]:
        change = self._change
        options = [] if leader is None else ["--leader", str(leader)]
        if change.route.how is not None:
            options += ["--in-one-go", "--how", change.route.how]
        if change.order:
            options += ["--order", ",".join(map(str, change.order))]
        return options

    def _ask(self, old: Texts, new: Texts, *options: str, now: Texts | None = None) -> Answer:
        self._asked += 1
        addresses = [] if now is None else [":".join(map(str, place)) for place in self._places()]
        answer = ask(old, new, self._home / f"asked-{self._asked}", *options, now=now, addresses=addresses)
        self._result.planner_seconds += answer.seconds
        return answer

    def _places(self) -> list[Place]:
        """The plain client ports of the servers before and after the change, whether they run or not."""
        places = (client_place(text) for texts in (self._old, self._new) for text in texts.values())
        return [place for place in dict.fromkeys(places) if place is not None]

    def _refused(self, answer: Answer) -> tuple[Outcome, str]:
        """Start the new state: its servers must not all serve."""
        error = answer.errors.splitlines()[0] if answer.errors else "no reason"
        if INPUT_REFUSED.search(answer.errors):
            return Outcome.NOT_TRIED, f"the input is refused, not the file: {error}"
        for sid, text in self._new.items():
            self._servers.start(sid, text)
        deadline = time.monotonic() + STALL_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.2)
            if ended := [sid for sid in self._new if not self._servers.alive(sid)]:
                return Outcome.AGREES, f"server {ended[0]} ends: {self._why(ended[0])}; the planner: {error}"
            if all(self._servers.mode(sid) for sid in self._new):
                return Outcome.DISAGREES, f"all servers serve with files that the planner refuses: {error}"
        silent = [sid for sid in self._new if not self._servers.mode(sid)]
        return Outcome.AGREES, f"servers {silent} do not serve; the planner: {error}"

    def _safe(self, answer: Answer, leader: Sid | None) -> tuple[Outcome, str]:
        conditional = self._change.starts_never and CONDITION in answer.text.lower()
        try:
            self._begin(leader)
            last = self._take(answer)
            self._look(last)
        except StallError as error:
            if conditional:
                return Outcome.AGREES, f"the condition in the answer is not met: {error}"
            return Outcome.DISAGREES, f"SAFE, and it stops: {error}"
        except LossError as error:
            return Outcome.DISAGREES, f"SAFE, and {error}"
        if self._other_order:
            return Outcome.DISAGREES, f"{self._other_order}; it was kept, served, equal"
        return Outcome.AGREES, "kept, served, equal"

    def _stalls(self, answer: Answer, leader: Sid | None) -> tuple[Outcome, str]:
        runs = [run for part in answer.parts for run in part["runs"] if run["outcome"] == "stalls"]
        if runs and all(run["faults"] for run in runs):
            return Outcome.NOT_TRIED, f"it stops under a fault: {answer.data['recommendation']}"
        if leader is None:
            leader = next((run["leader"] for run in runs if not run["faults"]), None)
        self._limit = STALL_SECONDS
        try:
            self._begin(leader)
            self._look(self._take(answer))
        except StallError as error:
            return Outcome.AGREES, f"it stops: {error}"
        except LossError as error:
            return Outcome.DISAGREES, f"STALLS, and {error}"
        return Outcome.DISAGREES, "STALLS, and every wait ended, and all servers serve"

    def _unsafe(self, answer: Answer, leader: Sid | None) -> tuple[Outcome, str]:
        try:
            self._begin(leader)
            self._look(self._take(answer))
        except StallError as error:
            return Outcome.NOT_TRIED, f"it stops before the danger: {error}"
        except LossError as error:
            return Outcome.AGREES, str(error)
        return Outcome.DISAGREES, "UNSAFE, and every write was kept"

    # --- the start, and the load

    def _begin(self, leader: Sid | None) -> None:
        """Start the servers of the old state, so that this one leads, and write."""
        voters = self._change.old.voters
        first = voters[: voters.index(leader) + 1] if leader in voters else ()
        if len(first) > len(voters) // 2 and len(first) < len(voters):
            for sid in first:
                self._servers.start(sid, self._old[sid])
            self._wait_modes(first, START_SECONDS)
        for sid, text in self._old.items():
            if not self._servers.alive(sid):
                self._servers.start(sid, text)
        self._wait_modes(self._old, START_SECONDS)
        session = self._servers.connect(self._servers.plain[0])
        session.ask(CREATE, LOAD, b"", WORLD, 0)
        session.close()
        load = LoadPlan(seed=self._change.number, pause=PAUSE)
        self._clients = [WriteClient(self._servers, number, load, self._witness) for number in range(CLIENTS)]
        wait_until(lambda: len(self._witness.replies) > 5, START_SECONDS, "writes are acknowledged")
        time.sleep(QUIET_SECONDS)

    def _wait_modes(self, sids: Mapping[Sid, str] | tuple[Sid, ...], seconds: float) -> None:
        for sid in sids:
            try:
                wait_until(lambda sid=sid: self._serves(sid), seconds, f"server {sid} serves")  # type: ignore[misc]
            except ServerError as error:
                raise StallError(str(error)) from None

    def _wait_but_leader(self, last: Texts) -> None:
        """Wait until all but one serve: with `leaderServes=no` the leader answers no client, as the answer says."""
        deadline = time.monotonic() + self._limit
        while (silent := [sid for sid in last if self._servers.mode(sid) is None]) and len(silent) > 1:
            if time.monotonic() > deadline:
                raise StallError(f"servers {silent} do not serve, and one of them may lead")
            time.sleep(0.1)

    def _serves(self, sid: Sid) -> bool:
        if not self._servers.alive(sid):
            raise StallError(f"server {sid} has ended: {self._why(sid)}")
        return self._servers.mode(sid) is not None

    def _why(self, sid: Sid) -> str:
        errors = [line for line in self._servers.log(sid).splitlines() if "Exception" in line or " ERROR " in line]
        return errors[-1][:200] if errors else "without an error in its log"

    def _stop_clients(self) -> None:
        for client in self._clients:
            client.stop()
        self._clients = []

    # --- the steps

    def _take(self, answer: Answer) -> Texts:
        """Take the steps of a plan on its route; return the files that the servers have in the end."""
        parts, before = answer.parts, self._old
        cut = min(int(self._change.cut * len(parts)), len(parts) - 1)
        for number, part in enumerate(parts):
            after = answer.files_of(number + 1)
            if part["condition"] is not None:
                self._check(part["condition"])
            leader = self._leader()
            order = _order_of(part, leader)
            steps = order["steps"] or self._restarts(before, after, leader)
            if number == cut and self._change.route is Route.GO_ON and len(steps) > 1:
                self._go_on(answer, number, order, steps, before, after)
            elif number == cut and self._change.route is Route.BACK and order["steps"]:
                self._go_back(answer, number, order, before, after)
                return before
            else:
                self._do(answer, number, order, steps, after)
            before = after
        for call in answer.waits.last:
            self._wait(answer.waits.command(call))
        return before

    def _leader(self) -> Sid | None:
        """The server that leads; None if none does within the limit, as where the leader does not serve clients."""
        deadline = time.monotonic() + self._limit
        while time.monotonic() < deadline:
            if len(leaders := self._servers.leaders()) == 1:
                return leaders[0]
            time.sleep(0.1)
        raise StallError("no server leads when a stage begins")

    @staticmethod
    def _restarts(before: Texts, after: Texts, leader: Sid | None) -> list[dict[str, Any]]:
        """The steps of a plan that has none, since no key needs an order: each server once, the leader last."""
        sids = sorted(before.keys() & after.keys(), key=lambda sid: (sid == leader, sid))
        return [{"action": "restart", "server": sid, "wait": True} for sid in sids]

    def _do(
        self, answer: Answer, number: int, order: dict[str, Any], steps: list[dict[str, Any]], after: Texts
    ) -> None:
        conditions = {condition["step"]: condition for condition in (order["proof"] or {}).get("conditions", ())}
        for place, step in enumerate(steps, start=1):
            if place in conditions:
                self._check(conditions[place])
            sid = step["server"]
            call = answer.waits.of(number + 1, sid)
            if call is None and step["wait"] and step["action"] != "stop" and order in answer.shown(number):
                raise ContradictionError(f"the answer prints no command that waits for server {sid}")
            self._step(step, after, call and answer.waits.command(call))

    def _step(self, step: dict[str, Any], after: Texts, command: str | None) -> None:
        sid, action = step["server"], step["action"]
        self._result.steps.append(f"{action} {sid}")
        if action != "start":
            self._servers.stop(sid)
        if action == "stop":
            return
        self._servers.start(sid, after[sid])
        if not step["wait"]:
            return
        if command is None:
            self._wait_modes((sid,), self._limit)
        else:
            self._wait(command, sid)

    def _wait(self, command: str, sid: Sid | None = None) -> None:
        """Run the printed command. Raises StallError if it does not end within the limit."""
        deadline = time.monotonic() + self._limit
        with shell(command, self._home) as running:
            while running.poll() is None:
                if sid is not None and not self._servers.alive(sid):
                    raise StallError(f"server {sid} has ended: {self._why(sid)}")
                if time.monotonic() > deadline:
                    modes = {member: self._servers.mode(member) for member in self._servers.sids}
                    call = command.splitlines()[-1]
                    raise StallError(f"{call} does not end in {self._limit:g} s; the servers: {modes}")
                time.sleep(0.05)
        if running.returncode:
            raise ContradictionError(f"a printed command ends with code {running.returncode}: {command}")

    def _check(self, condition: dict[str, Any]) -> None:
        """Wait as *check first* says: the servers that run follow one leader, and others are stopped."""
        running = set(condition["running"])
        deadline = time.monotonic() + self._limit
        while True:
            modes = {sid: self._servers.mode(sid) for sid in running}
            leads = [sid for sid, mode in modes.items() if mode in {"leader", "standalone"}]
            if len(leads) == 1 and all(modes.values()):
                break
            if time.monotonic() > deadline:
                raise StallError(f"check first: servers {sorted(running)} do not follow one leader: {modes}")
            time.sleep(0.1)
        if running_on := [sid for sid in condition["stopped"] if self._servers.alive(sid)]:
            raise StallError(f"check first: servers {running_on} must be stopped")

    # --- interruptions

    def _go_on(
        self,
        answer: Answer,
        number: int,
        order: dict[str, Any],
        steps: list[dict[str, Any]],
        before: Texts,
        after: Texts,
    ) -> None:
        """Do some steps, ask with `--now`, and do the rest as that answer says."""
        done = 1 + int(self._change.cut * len(steps) * 7) % (len(steps) - 1)
        self._do(answer, number, order, steps[:done], after)
        applied = {step["server"] for step in steps[:done]}
        now = {sid: text for sid, text in before.items() if sid not in applied}
        now |= {sid: after[sid] for sid in applied if sid in after}
        rest = self._ask(before, after, now=now)
        self._result.verdict += f", --now after {done} of {len(steps)}: {rest.verdict}"
        left = [f"{step['action']} {step['server']}" for step in steps[done:]]
        if rest.code not in SAFE:
            if answer.code in SAFE and not (rest.data and rest.data["now"]["unseen"]):  # some have no plain client port
                reason = rest.data["recommendation"] if rest.data else rest.errors
                raise ContradictionError(f"the plan is safe, and --now after {done} steps is not: {reason}")
            raise _Ended(Outcome.UNDECIDED, "--now is not safe after a plan that stops")
        order_of_rest = _order_of(rest.parts[0], order["leader"])
        steps_of_rest = [step for part in rest.parts for step in _order_of(part, order["leader"])["steps"]]
        planned = [f"{step['action']} {step['server']}" for step in steps_of_rest]
        if planned and order["steps"] and planned != left:
            self._other_order = f"--now after {done} steps: {', '.join(planned)} instead of {', '.join(left)}"
        self._do(rest, 0, order_of_rest, steps_of_rest or steps[done:], after)

    def _go_back(self, answer: Answer, number: int, order: dict[str, Any], before: Texts, after: Texts) -> None:
        """Do some steps, and then the way back from the last of them."""
        steps = order["steps"]
        done = 1 + int(self._change.cut * len(steps) * 7) % len(steps)
        failure = next((row for row in order["failures"] if row["step"] == done), None)
        if failure is None:
            raise _Ended(Outcome.UNDECIDED, f"the answer has no way back from step {done}")
        back = failure["going_back"]
        self._result.verdict += f", back from {done} of {len(steps)}: {back['verdict']}"
        if back["verdict"] == "undecided":
            raise _Ended(Outcome.UNDECIDED, f"the way back from step {done}: {back['because']}")
        if back["verdict"] == "unsafe":
            raise _Ended(Outcome.NOT_TRIED, f"the way back from step {done} is unsafe: {back['because']}")
        self._do(answer, number, order, steps[:done], after)
        self._result.steps.append("back")
        try:
            for step in back["steps"]:
                self._step(step, before, None)
        except StallError as error:
            if back["verdict"] == "stalls":
                raise _Ended(Outcome.AGREES, f"the way back stops: {error}") from None
            raise
        if back["verdict"] == "stalls":
            raise _Ended(Outcome.DISAGREES, "the way back STALLS, and every wait ended")

    # --- the end

    def _look(self, last: Texts) -> None:
        """Every server of the last state serves and takes a write, and has every acknowledged write."""
        hidden = any(key_of(text, "leaderServes") == "no" for text in last.values())
        if hidden:
            self._wait_but_leader(last)
        else:
            self._wait_modes(last, self._limit)
        plain = [sid for sid in last if sid in self._servers.plain and (not hidden or self._servers.mode(sid))]
        for sid in plain:
            self._write_at(sid)
        time.sleep(QUIET_SECONDS)
        self._stop_clients()
        written = {sid: self._servers.written(sid) for sid in plain}
        deadline = time.monotonic() + 10.0
        while len({frozenset(paths.items()) for paths in written.values()}) > 1 and time.monotonic() < deadline:
            time.sleep(0.5)
            written = {sid: self._servers.written(sid) for sid in plain}
        replies = self._witness.replies
        for sid, paths in written.items():
            lacking = [reply for reply in replies if paths.get(reply.path) != reply.zxid]
            if lacking:
                shown = "; ".join(map(str, lacking[:3]))
                raise LossError(f"server {sid} lacks {len(lacking)} of {len(replies)} acknowledged writes: {shown}")
        if len({frozenset(paths.items()) for paths in written.values()}) > 1:
            counts = ", ".join(f"server {sid}: {len(paths)}" for sid, paths in written.items())
            raise LossError(f"servers have different writes ({counts})")

    def _write_at(self, sid: Sid) -> None:
        """A write by this server is acknowledged. Raises StallError."""
        deadline = time.monotonic() + self._limit
        path, trial = f"{LOAD}/end-{sid}", 0
        while time.monotonic() < deadline:
            trial += 1
            try:
                session = self._servers.connect(sid)
                try:
                    answer = session.ask(CREATE, f"{path}-{trial}", b"x", WORLD, 0)
                    if answer.err == NO_NODE:
                        raise LossError(f"server {sid} lacks {LOAD}, with all acknowledged writes")
                    if answer.err == 0:
                        self._witness.acknowledged(sid, f"{path}-{trial}", answer.zxid)
                        return
                finally:
                    session.drop()
            except (ServerError, OSError):
                time.sleep(0.2)
        raise StallError(f"server {sid} takes no write in the end")


def _order_of(part: dict[str, Any], leader: Sid | None) -> dict[str, Any]:
    """The order for the server that leads, or else the one that is shown first; without one, an order without steps."""
    orders = part["orders"]
    empty = {"leader": leader, "steps": [], "proof": None, "failures": []}
    return next((order for order in orders if order["leader"] == leader), orders[0] if orders else empty)
