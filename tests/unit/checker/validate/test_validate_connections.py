"""The connections of a learner and its leader in their journals: which of them may belong together, and in which order.

The journals are written by hand, as lists of the packets that were sent and read. The expected values follow from TCP
and from the protocol: the bytes of each connection travel alone, a learner has one connection at a time, and neither
side sends anything behind the first packet before it has read an answer.
"""

from collections.abc import Callable

import pytest

from checker.validate.happens_before import HappensBefore, happens_before, merged, sender_of
from checker.validate.replay import Mismatch
from spec.effects import Connect, Disconnect, Send
from spec.election.messages import Start
from spec.quorum import Sid
from spec.zab.events import LearnerGone, Receive
from spec.zab.packets import AckEpoch, FollowerInfo, LeaderInfo, QuorumPacket
from tests.support.written_journals import VIEW, WrittenJournals

LEARNER, LEADER = 1, 2
INFO, OTHER_INFO, ANSWER, ACK = FollowerInfo(1), FollowerInfo(2), LeaderInfo(3), AckEpoch(0, 1)


class Ensemble(WrittenJournals):
    """A learner, which is server 1, and its leader."""

    def connects(self, info: QuorumPacket = INFO) -> int:
        """The learner makes a connection, and leaves the one before it."""
        return self.handles(LEARNER, Start(VIEW), Disconnect(), Connect(LEADER, info))

    def accepts(self, info: QuorumPacket = INFO) -> int:
        """The leader reads the first packet of a connection, and answers."""
        self.handles(LEADER, LearnerGone(LEARNER))
        return self.handles(LEADER, Receive(LEARNER, info), Send(LEARNER, ANSWER))

    def acknowledges(self) -> None:
        """The learner reads the answer, and the leader reads the reply to it."""
        self.is_answered()
        self.handles(LEADER, Receive(LEARNER, ACK))

    def is_answered(self) -> None:
        self.handles(LEARNER, Receive(LEADER, ANSWER), Send(LEADER, ACK))

    def notifies(self, sender: Sid, reader: Sid, round: int) -> None:
        self.sends(sender, round)
        self.hears(reader, round)

    def senders(self) -> dict[int, int]:
        """For each record in which the leader read a packet, the record in which the learner sent it."""
        found = happens_before(list(self.tracks.values()))
        assert isinstance(found, HappensBefore), found
        assert not [each for each in merged(list(self.tracks.values()), found) if isinstance(each, Mismatch)]
        return {record: sender_of(need)[1] for record, need in enumerate(found.of[LEADER]) if need >= 0}

    def mismatch(self) -> tuple[Sid, str]:
        """The server and the event of the mismatch. Later steps show that neither journal was copied too early."""
        self.handles(LEARNER, Start(VIEW))
        self.handles(LEADER, Start(VIEW))
        found = happens_before(list(self.tracks.values()))
        assert isinstance(found, Mismatch)
        return found.sid, found.event


def restart(ensemble: Ensemble) -> None:
    ensemble.starts(LEARNER)


def nothing(_: Ensemble) -> None:
    """The learner closes its connection in the same life."""


@pytest.mark.parametrize("between", [restart, nothing])
@pytest.mark.parametrize("skew", [0.0, 1000.0, -1000.0])
def test_the_first_packet_of_a_connection_that_was_left_may_be_read_after_that_of_the_next(
    between: Callable[[Ensemble], None], skew: float
) -> None:
    ensemble = Ensemble(skew)
    old = ensemble.connects()
    between(ensemble)
    new = ensemble.connects()
    read_first = ensemble.accepts()
    ensemble.acknowledges()
    read_last = ensemble.accepts()

    senders = ensemble.senders()

    assert (senders[read_first], senders[read_last]) == (new, old)


@pytest.mark.parametrize("skew", [0.0, 1000.0, -1000.0])
def test_a_late_connection_is_not_taken_for_a_newer_one_that_was_lost(skew: float) -> None:
    """The learner made the newest connection because of a notification that the leader sent behind the late packet."""
    ensemble = Ensemble(skew)
    old = ensemble.connects()
    ensemble.connects()
    ensemble.accepts()
    ensemble.acknowledges()
    late = ensemble.accepts()
    ensemble.notifies(LEADER, LEARNER, 1)
    ensemble.connects()

    assert ensemble.senders()[late] == old


def test_an_answer_is_not_taken_for_that_to_a_late_connection() -> None:
    """The learner sent a notification after it had read the answer, and the leader heard it before the late packet."""
    ensemble = Ensemble()
    old, new = ensemble.connects(), ensemble.connects()
    first = ensemble.accepts()
    ensemble.is_answered()
    ensemble.notifies(LEARNER, LEADER, 1)
    late = ensemble.accepts()

    senders = ensemble.senders()

    assert (senders[first], senders[late]) == (new, old)


def test_late_packets_belong_to_the_connections_that_they_were_sent_on() -> None:
    """Their order says nothing."""
    ensemble = Ensemble()
    first, second, new = ensemble.connects(INFO), ensemble.connects(OTHER_INFO), ensemble.connects(OTHER_INFO)
    read = ensemble.accepts(OTHER_INFO)
    ensemble.acknowledges()
    late = ensemble.accepts(OTHER_INFO), ensemble.accepts(INFO)

    senders = ensemble.senders()

    assert [senders[read], *(senders[each] for each in late)] == [new, second, first]


STEPS: dict[str, Callable[[Ensemble], object]] = {
    "connect": Ensemble.connects,
    "connect otherwise": lambda ensemble: ensemble.connects(OTHER_INFO),
    "accept": Ensemble.accepts,
    "accept otherwise": lambda ensemble: ensemble.accepts(OTHER_INFO),
    "acknowledge": Ensemble.acknowledges,
    "answered": Ensemble.is_answered,
    "another ack": lambda ensemble: ensemble.handles(LEADER, Receive(LEARNER, ACK)),
    "the leader starts": lambda ensemble: ensemble.starts(LEADER),
}
IMPOSSIBLE = {
    "each late packet needs a connection of its own": "connect, connect, accept, acknowledge, accept, accept",
    "a late packet is one that the learner sent": "connect otherwise, connect, accept, acknowledge, accept",
    # The learner left the connection without an answer, so it has sent no second packet on it.
    "a leader reads no second packet on a late connection": (
        "connect, connect, accept, acknowledge, accept, another ack"
    ),
    # The leader answers a late connection only after it has read from the next one, for which the learner left it.
    "a learner reads no answer on a connection that is late": (
        "connect, answered, connect otherwise, accept otherwise, accept"
    ),
    # A connection ends with the process that it was made to.
    "a process accepts no connection that is older than one of the process before": (
        "connect, connect, accept, acknowledge, the leader starts, accept"
    ),
}


@pytest.mark.parametrize("steps", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_packet_on_a_connection_that_cannot_be_late_is_a_mismatch(steps: str) -> None:
    ensemble = Ensemble()
    for step in steps.split(", "):
        STEPS[step](ensemble)
    assert ensemble.mismatch() == (LEADER, f"packet of server {LEARNER}")


def test_a_connection_may_be_late_in_the_process_that_follows_one_without_connections() -> None:
    ensemble = Ensemble()
    ensemble.starts(LEADER)
    old, new = ensemble.connects(), ensemble.connects()
    first = ensemble.accepts()
    ensemble.acknowledges()
    late = ensemble.accepts()

    senders = ensemble.senders()

    assert (senders[first], senders[late]) == (new, old)
