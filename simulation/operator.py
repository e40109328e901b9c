"""The operator of a simulated ensemble: reconfigurations, and the restart of a leader that a server cannot follow.

Rules of this module:

- A request changes one server, and leaves at least two voters, so that every quorum of the new members meets every
  quorum of the old ones.
- A request is sent once. Its answer does not matter: the history of the clients and the journals are judged.
- `restore` asks until every server has its first role again.
"""

import asyncio

from simulation.ensemble import CLIENT_PORT, SimulatedEnsemble, address_of, server_line
from simulation.session import ClientSession, NoAnswerError
from simulation.world.loop import SimulatedLoop
from spec.quorum import Sid, View
from spec.tree.requests import Reconfig

PATIENCE = 5.0
FOLLOWING = 30.0
"""Seconds without progress after which the operator looks whether the leader has to be restarted."""


class Operator:
    """Sends reconfigurations to an ensemble, and restarts leaders."""

    def __init__(self, loop: SimulatedLoop, ensemble: SimulatedEnsemble) -> None:
        self._loop, self._ensemble = loop, ensemble
        self._busy = False
        self.restarts = 0
        """How often a leader was restarted."""

    def change(self, victim: Sid, choice: int) -> bool:
        """Begins to change one server: 0, it leaves; 1, it joins as a voter; 2, as an observer."""
        view = self._ensemble.view()
        if view is None or self._busy:
            return False
        request = _request(view, victim, choice)
        if request is None:
            return False
        self._busy = True
        self._ensemble.controller.spawn(self._send(request))
        return True

    async def _send(self, request: Reconfig) -> None:
        leader = self._ensemble.leader() or 1
        session = ClientSession(self._loop, 10_000, PATIENCE)
        try:
            await session.attach(address_of(leader), CLIENT_PORT)
            await session.ask(request)
            await session.close()
        except NoAnswerError:
            pass
        finally:
            session.drop()
            self._busy = False

    async def restore(self, deadline: float) -> bool:
        """Gives every server its first role; returns whether that was possible in time."""
        ensemble, unchanged = self._ensemble, self._loop.now
        while self._loop.now < deadline:
            view = ensemble.view()
            if view is not None:
                wrong = [sid for sid in ensemble.machines if not ensemble.has_first_role(sid, view)]
                if not wrong:
                    return True
                requests = (_request(view, sid, 2 if ensemble.is_observer(sid) else 1) for sid in wrong)
                request = next((candidate for candidate in requests if candidate is not None), None)
                if request is not None:
                    await self._send(request)
                if ensemble.view() != view:
                    unchanged = self._loop.now
            await asyncio.sleep(0.5)
            if self._loop.now >= unchanged + FOLLOWING:
                self.release(*ensemble.machines)
                unchanged = self._loop.now
        return False

    def release(self, *sids: Sid) -> bool:
        """Restarts the leader if one of these servers cannot follow it; returns whether it has.

        There are two cases, in ZooKeeper as here. Either the server has promised a later epoch, to a leader that got no
        quorum: a leader offers the epoch that it once chose (`Leader.getEpochToPropose`), and the server refuses it
        (`Learner.registerWithLeader`). Or the server has seen a reconfiguration that makes an observer a voter
        (docs/findings/promotion-stops-service.md), and needs a quorum of both views to follow. The observer does not
        vote (`FastLeaderElection.lookForLeader`). The leader waits for the server to commit the reconfiguration, or it
        is a later one that has not got it. The next election ends both.
        """
        leader = self._ensemble.leader()
        if leader is None or not any(self._is_stranded(sid, leader) for sid in sids if sid != leader):
            return False
        self._ensemble.take_down(leader, power=False)
        self._ensemble.bring_up(leader)
        self.restarts += 1
        return True

    def _is_stranded(self, sid: Sid, leader: Sid) -> bool:
        """Whether a server cannot follow a leader before the next election."""
        nodes = self._ensemble.nodes
        if sid not in nodes:
            return False
        led, server = nodes[leader].server, nodes[sid].server
        if led.zab is not None and server.durable.accepted_epoch > led.zab.epoch:
            return True
        latest = server.last_seen
        return server.zab is None and latest is not None and bool(latest.voters & led.view.observers)


def _request(view: View, victim: Sid, choice: int) -> Reconfig | None:
    """A reconfiguration of one server; None for one that would change nothing, or leave too few voters."""
    votes, observes = victim in view.voters, victim in view.observers
    if votes and choice != 1 and len(view.voters) <= 2:
        return None
    if choice == 0:
        return Reconfig("", str(victim), "", -1) if votes or observes else None
    if (choice == 1 and votes) or (choice == 2 and observes):
        return None
    return Reconfig(f"server.{victim}={server_line(victim, observer=choice == 2)}", "", "", -1)
