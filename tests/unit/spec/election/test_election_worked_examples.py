"""The worked examples of the election guide, with the receive bucket of each server.

A bucket holds the last vote of each sender. It is folded from `VoteReceived` facts, and written here as the
guide writes it: sender -> leader, or sender -> (zxid, leader).
"""

from spec.durable import Durable
from spec.effects import Observe, Send, Timer
from spec.election import Deliver, Fired, Notification, ServerState, Vote, VoteReceived
from spec.election.channel import Channel, Status, deliver, establish, reachable, send
from spec.election.messages import ElectionEvent
from spec.quorum import View, majority_view
from spec.server import Server, start, step, summary

FOLLOWING, LEADING, LOOKING = ServerState.FOLLOWING, ServerState.LEADING, ServerState.LOOKING
THREE = majority_view({1, 2, 3})
FIVE = majority_view({1, 2, 3, 4, 5})


class Ensemble:
    """Servers and the channels between them; `first` is the order of the senders whose messages arrive first."""

    def __init__(self, first: tuple[int, ...] = (1, 2, 3, 4, 5)) -> None:
        self.servers: dict[int, Server] = {}
        self.channels = {(a, b): Channel() for a in first for b in first if a != b}
        self.votes: list[VoteReceived] = []

    def boot(self, sid: int, view: View, zxid: int = 0) -> None:
        for other in self.servers:
            for link in ((sid, other), (other, sid)):
                self.channels[link] = reachable(self.channels[link])
        self.servers[sid] = Server(sid, view, Durable(snapshot=zxid))
        done = start(self.servers[sid])
        assert done is not None
        self._take(sid, done.state, done.effects)

    def happen(self, sid: int, event: ElectionEvent) -> None:
        done = step(self.servers[sid], event)
        assert done is not None
        self._take(sid, done.state, done.effects)

    def _take(self, sid: int, server: Server, effects: tuple[object, ...]) -> None:
        self.servers[sid] = server
        for effect in effects:
            if isinstance(effect, Observe) and isinstance(effect.fact, VoteReceived):
                self.votes.append(effect.fact)
            if isinstance(effect, Send):
                there, back = (sid, effect.peer), (effect.peer, sid)
                known = effect.peer in server.view.members
                done = send(self.channels[there], effect.message, knows_peer=known)
                self.channels[there] = done.channel
                if done.connected:
                    self.channels[back] = establish(self.channels[back])

    def deliver_all(self) -> None:
        while arriving := [link for link, channel in self.channels.items() if channel.in_flight]:
            source, target = arriving[0]
            done = deliver(self.channels[source, target])
            assert done is not None
            assert isinstance(done.message, Notification)
            self.channels[source, target] = done.channel
            self.happen(target, Deliver(source, done.message))

    def settle(self) -> None:
        """Deliver every message, and end every wait for a better vote."""
        self.deliver_all()
        for sid, server in self.servers.items():
            if server.election is not None and server.election.finalizing:
                self.happen(sid, Fired(Timer.FINALIZE_WAIT))
        self.deliver_all()

    def bucket(self, sid: int) -> dict[int, int]:
        return {each.sender: each.vote.leader for each in self.votes if each.server == sid}

    def roles(self) -> dict[int, tuple[ServerState | None, int | None]]:
        return {sid: (summary(each).state, summary(each).leader) for sid, each in self.servers.items()}


def test_r7_the_server_with_the_newer_data_leads_although_its_id_is_lower() -> None:
    """Server 1 has zxid 10, server 3 has zxid 8, and server 2, the leader, has died."""
    ensemble = Ensemble()
    ensemble.boot(1, THREE, zxid=10)
    ensemble.boot(3, THREE, zxid=8)

    def bucket(sid: int, votes: list[VoteReceived]) -> dict[int, tuple[int, int]]:
        return {each.sender: (each.vote.zxid, each.vote.leader) for each in votes if each.server == sid}

    ensemble.deliver_all()
    first_round = [vote for vote in ensemble.votes if vote.vote.leader == vote.sender]
    assert bucket(1, first_round) == {1: (10, 1), 3: (8, 3)}
    assert bucket(3, first_round) == {3: (8, 3), 1: (10, 1)}

    assert bucket(1, ensemble.votes) == {1: (10, 1), 3: (10, 1)}
    assert bucket(3, ensemble.votes) == {1: (10, 1), 3: (10, 1)}

    ensemble.settle()
    assert ensemble.roles() == {1: (LEADING, 1), 3: (FOLLOWING, 1)}


def test_r10_growing_from_three_to_five_with_the_leader_first_gives_two_leaders() -> None:
    """2 is stopped; 1 and 3 are still on the three-server file, 4 and 5 on the new one."""
    old = Ensemble(first=(5, 4, 3, 2, 1))
    old.boot(1, THREE)
    old.boot(3, THREE)
    old.settle()
    assert old.roles() == {1: (FOLLOWING, 3), 3: (LEADING, 3)}
    assert old.bucket(1) == old.bucket(3) == {1: 3, 3: 3}

    old.boot(4, FIVE)
    old.boot(5, FIVE)
    old.settle()
    assert old.roles() == {1: (FOLLOWING, 3), 3: (LEADING, 3), 4: (LOOKING, None), 5: (LOOKING, None)}
    assert [old.bucket(sid)[voter] for sid in (4, 5) for voter in (4, 5)] == [5, 5, 5, 5]

    old.boot(2, FIVE)
    old.settle()
    assert old.roles() == {1: (FOLLOWING, 3), 3: (LEADING, 3), 2: (FOLLOWING, 5), 4: (FOLLOWING, 5), 5: (LEADING, 5)}
    assert old.bucket(1) == old.bucket(3) == {1: 3, 2: 2, 3: 3}
    assert old.bucket(2) == {1: 3, 2: 5, 3: 3, 4: 5, 5: 5}


def test_r10_with_one_write_missing_at_4_and_5_all_join_the_one_leader() -> None:
    """The last votes of 1 and 3 to 2 were still queued for it: they are for 3, and 2 passes them on to 4 and 5."""
    ensemble = Ensemble(first=(3, 1, 2, 4, 5))
    ensemble.boot(1, THREE, zxid=2)
    ensemble.boot(3, THREE, zxid=2)
    ensemble.settle()
    assert ensemble.channels[3, 2].status is Status.DEAD
    assert ensemble.channels[3, 2].queued == Notification(LOOKING, Vote(3, 2, 0), 1)

    ensemble.boot(4, FIVE, zxid=1)
    ensemble.boot(5, FIVE, zxid=1)
    ensemble.boot(2, FIVE, zxid=2)
    ensemble.settle()

    assert {leader for _, leader in ensemble.roles().values()} == {3}


def test_starting_one_after_the_other_the_first_quorum_keeps_its_leader() -> None:
    """1 and 2 elect 2; 3 has the higher id, comes late and follows."""
    ensemble = Ensemble()
    ensemble.boot(1, THREE)
    ensemble.boot(2, THREE)
    ensemble.settle()
    ensemble.boot(3, THREE)
    ensemble.settle()

    assert ensemble.roles() == {1: (FOLLOWING, 2), 2: (LEADING, 2), 3: (FOLLOWING, 2)}
