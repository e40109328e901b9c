"""Reconfigurations under writes and kills: servers join, leave and change their role while others are killed.

Rules of this module:

- One server changes its role in a request, so that every quorum of the new members meets every quorum of the old ones.
  Real 3.9.5 servers can lose writes otherwise (`docs/reference-reconfig-facts.md`, a pending configuration).
- At least two servers vote. A server that is no member keeps running: it follows without a vote.
- At most one server is killed in each reconfiguration, at a random moment of it, and started again.
- A server that is killed as no member finds itself missing in its own file. It gets the file of a new joiner, as an
  operator would write it.
- A reconfiguration is asked for until its members are active.
"""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from checker import histories
from checker.histories import Findings, StaleBound
from harness.commands import CREATE2, OPEN
from harness.ensemble import Ensemble
from harness.processes import ServerError
from tests.node.chaos.client import NoAnswerError
from tests.node.chaos.replicas import attached, replica
from tests.node.chaos.run import CLIENTS, SYNC_LIMIT, TICK
from tests.node.chaos.workload import ROOT, Worker
from tests.node.reconfigured import OBSERVER, PARTICIPANT, Roles, agreed, change_members, line_of

KILLED = 0.7
"""The share of reconfigurations in which a server is killed."""
MOMENTS = (0.0, 0.6)
"""Seconds from the request to the kill."""
DEAD = (0.1, 1.0)
"""Seconds from the kill to the next start."""
STALE = StaleBound((SYNC_LIMIT + 2) * TICK / 1000)


class ReconfigReport(msgspec.Struct, frozen=True):
    """The result of a run: what was done in order, the checked history, and the last configuration."""

    done: tuple[str, ...]
    findings: Findings
    config: str
    stuck: str = ""

    @property
    def passed(self) -> bool:
        """Whether every check passed, and every reconfiguration ended."""
        return self.findings.passed and not self.stuck

    def __str__(self) -> str:
        return "\n".join([*self.done, *([f"stuck: {self.stuck}"] if self.stuck else []), str(self.findings)])


def reconfigure(ensemble: Ensemble, count: int, seed: int) -> ReconfigReport:
    """Carry out this number of reconfigurations in an ensemble that does not run; all servers run on return."""
    return asyncio.run(_Run(ensemble, seed).run(count))


class _Run:
    def __init__(self, ensemble: Ensemble, seed: int) -> None:
        self._ensemble = ensemble
        self._random = random.Random(f"reconfigurations {seed}")
        self._roles: dict[int, str] = dict.fromkeys(ensemble.sids, PARTICIPANT)
        ports = {sid: ensemble.client_port(sid) for sid in ensemble.sids}
        self._workers = [Worker(number, ports, seed) for number in range(CLIENTS)]
        self._done: list[str] = []

    async def run(self, count: int) -> ReconfigReport:
        sids = self._ensemble.sids
        await asyncio.to_thread(self._ensemble.start_led_by, self._random.choice(sids[len(sids) // 2 :]))
        session = await attached(self._ensemble.client_port(sids[0]))
        await session.ask(CREATE2, ROOT, b"", OPEN, 0)
        await session.close()
        ended = asyncio.Event()
        working = [asyncio.create_task(worker.run(ended)) for worker in self._workers]
        stuck, config, replicas = "", "", []
        try:
            for number in range(count):
                config = await self._change(number)
        except ServerError as error:
            stuck = str(error)
        finally:
            ended.set()
            await asyncio.gather(*working)
        try:
            replicas = [await replica(sid, self._ensemble.client_port(sid)) for sid in sorted(self._roles)]
        except NoAnswerError as error:
            stuck = stuck or f"the trees of the members could not be read at the end: {error}"
        recorded = sorted((each for worker in self._workers for each in worker.recorded), key=lambda one: one.invoked)
        entries = [STALE, *recorded, *replicas]
        file = self._ensemble.directory / "history.jsonl"
        histories.save(file, entries)
        findings = histories.check(histories.history_of(entries, str(file)))
        return ReconfigReport(tuple(self._done), findings, config, stuck)

    async def _change(self, number: int) -> str:
        """One reconfiguration, perhaps with a kill; return the configuration that all members agree on."""
        before, sid, role = dict(self._roles), *self._next()
        self._roles = {**before, sid: role} if role else {each: it for each, it in before.items() if each != sid}
        joining, leaving = (line_of(self._ensemble, sid, role), None) if role else (None, str(sid))
        asking = asyncio.to_thread(change_members, self._ensemble, self._roles, tuple(before), joining, leaving)
        asked = asyncio.create_task(asking)
        killed = await self._kill(before) if self._random.random() < KILLED else "none"
        self._done.append(f"{number}: server {sid} becomes {role or 'no member'}; killed: {killed}")
        await asked
        for each in self._ensemble.sids:
            await self._serves(each)
        return await asyncio.to_thread(agreed, self._ensemble, sorted(self._roles), self._roles)

    def _next(self) -> tuple[int, str]:
        """The server that changes, and its new role; empty if it leaves."""
        voters = [sid for sid, role in self._roles.items() if role == PARTICIPANT]
        possible = [
            (sid, role)
            for sid in self._ensemble.sids
            for role in (PARTICIPANT, OBSERVER, "")
            if role != self._roles.get(sid, "") and (role == PARTICIPANT or sid not in voters or len(voters) > 2)
        ]
        return self._random.choice(possible)

    async def _kill(self, before: Roles) -> str:
        """Kill a server and start it again; return its id and its role before the change."""
        await asyncio.sleep(self._random.uniform(*MOMENTS))
        sid = self._random.choice(self._ensemble.sids)
        was = await asyncio.to_thread(self._ensemble.role, sid)
        await asyncio.to_thread(self._ensemble.kill, sid)
        await asyncio.sleep(self._random.uniform(*DEAD))
        self._ensemble.start(sid)
        return f"{sid}, {was or 'not serving'}, {before.get(sid, 'no member')}"

    async def _serves(self, sid: int) -> None:
        """Wait until a server serves; one that has ended because its file leaves it out becomes a joiner."""
        for _ in range(3):
            try:
                await asyncio.to_thread(self._ensemble.wait_serving, [sid])
            except ServerError:
                log: Path = self._ensemble.process(sid).log
                ending = log.read_text("utf-8", "replace")[-4000:]
                if self._ensemble.process(sid).alive or not any(each in ending for each in _LEFT_OUT):
                    raise
                self._ensemble.tell(sid, sorted({*self._roles, sid}))
                self._ensemble.start(sid)
            else:
                return


_LEFT_OUT: Sequence[str] = ("not in the peer list", "is not in the server list")
"""The reasons for which a real server, and a node, do not start with a file that leaves them out."""
