"""The elections of real servers: which servers hear each other's votes, and when.

Rules of this module:

- A server that looks for a leader is isolated: its election connections are refused until the step of its election.
- An election joins the members of its step only, so no other server can be elected.

Source: `FastLeaderElection.lookForLeader`, `QuorumCnxManager`.
"""

import time
from itertools import combinations

from harness.reproduce.lab import POLL_SECONDS, Lab
from harness.reproduce.schedule import Schedule, ScheduledStep
from spec.election.state import Peer
from spec.quorum import Sid

SECONDS_TO_ELECT = 10.0


class ElectionControl:
    """The election connections of a lab, joined and ended as the steps of a schedule demand."""

    def __init__(self, schedule: Schedule, lab: Lab) -> None:
        self._schedule, self._lab = schedule, lab
        self._refusals: dict[Sid, int] = {}  # the count of `Network.refusals` when a server was isolated

    def isolate(self, sid: Sid) -> None:
        """End the election connections of a server that looks for a leader, until the step of its election."""
        self._refusals[sid] = self._lab.network.refusals[sid]
        for peer in self._lab.sids:
            if peer != sid:
                self._lab.network.sever_election(sid, peer)

    def join(self, sids: frozenset[Sid]) -> None:
        """Connect these servers with each other."""
        for sid in sids:
            for peer in sids:
                if sid < peer:
                    self._lab.network.join_election(sid, peer)

    def hear(self, sid: Sid, peer: Sid, *, both_ways: bool) -> None:
        """Let a server that looks for a leader hear another one, which hears nothing of it unless `both_ways`.

        A server that looks would count the vote of the first one; one that has decided only answers it.
        """
        self._lab.network.join_election(sid, peer, mute=None if both_ways else sid)

    def wait_looking(self, sid: Sid, deadline: float) -> str | None:
        """Wait until a server that was isolated looks for a leader; the difference if it does not.

        It tries to connect then, and is refused.
        """
        while self._lab.network.refusals[sid] <= self._refusals.get(sid, 0):
            if time.monotonic() > deadline:
                return f"server {sid} does not look for a leader"
            time.sleep(POLL_SECONDS)
        return None

    def leave(self, sid: Sid, other: Sid) -> None:
        """End the quorum connection of two servers; the learner then looks for a leader."""
        link = self._lab.network.link(sid, other)
        if link is not None:
            self.isolate(link.learner)
            link.drop()

    def elect(self, step: ScheduledStep, leader: Sid, members: frozenset[Sid], deadline: float) -> str | None:
        """Join the election connections of the members, once each that looks for a leader has its new vote.

        Before, a server would receive the last notification of an earlier election, which QuorumCnxManager sends again.
        The result is the difference that prevents the election, if there is one.
        """
        schedule, network = self._schedule, self._lab.network
        joined = schedule.group(step.before, leader) | {leader, *members}
        awaited = {sid for sid in joined if schedule.server(step.before, sid).zab is None}
        if problem := next(filter(None, (self.wait_looking(sid, deadline) for sid in awaited)), None):
            return problem
        # A member with a better vote hears of the leader once the others follow it.
        votes = {sid: vote_of(schedule.server(step.before, sid).peer) for sid in joined}
        first = {sid for sid in joined if sid not in awaited or votes[sid] <= votes[leader]}
        if first < joined:
            self.join(frozenset(first))
            while not any(network.link(sid, leader) for sid in first - {leader}):
                if time.monotonic() > deadline:
                    return f"no server follows server {leader}"
                time.sleep(POLL_SECONDS)
        self.join(joined)
        self._join_again_until_followed(joined, frozenset(awaited - {leader}), leader, deadline)
        return None

    def _join_again_until_followed(
        self, joined: frozenset[Sid], followers: frozenset[Sid], leader: Sid, deadline: float
    ) -> None:
        """Open the election connections anew every few seconds until each follower has a connection with the leader.

        The listener of `QuorumCnxManager` reads the opening of a connection in the thread that accepts. A connection
        that is opened and then silent stops it until a time-out, which is long here.
        """
        network, opened = self._lab.network, time.monotonic()
        while time.monotonic() < deadline and not all(network.link(sid, leader) for sid in followers):
            if time.monotonic() > opened + SECONDS_TO_ELECT:
                for low, high in combinations(sorted(joined), 2):
                    network.sever_election(low, high)
                self.join(joined)
                opened = time.monotonic()
            time.sleep(POLL_SECONDS)


def vote_of(peer: Peer) -> tuple[int, int, Sid]:
    """The vote of a server for itself, in the order of votes."""
    return peer.durable.current_epoch, peer.last_zxid, peer.sid
