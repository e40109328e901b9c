"""Several events in one step are the same as a step for each: states and effects, on states of whole ensembles.

The states are those of random runs of the checker's ensemble. At each of them, every list of likely events of a server
is handled by `spec.server.step_all` and by `spec.server.step`, one by one.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from checker.engine.semantics import successors
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from spec import server as spec_server
from spec.effects import Effects
from spec.election.channel import ChannelRules
from spec.election.state import ElectionRules
from spec.quorum import majority_view
from spec.server import Event, Server
from spec.txn import LAST_COUNTER, Txn, make_zxid
from spec.zab.events import ClientSync, ClientWrite, Receive, Synced, Tick
from spec.zab.packets import Ack, Commit, Inform, Proposal, QuorumPing, QuorumRequest
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, Stage, ZabRules, last_logged

VIEW = majority_view([1, 2, 3], [4])
RULES = ZabRules(hold_commits=True, observers_log_first=True)
ANY_ROUND = ElectionRules()
RUNS, MOVES, LISTS = 24, 60, 6
LONGEST = 8


def setup() -> Setup:
    """Three voters and an observer, with writes, lost connections and crashes."""
    file = File("zoo.cfg", VIEW)
    members = tuple(Member(sid, file) for sid in sorted(VIEW.members))
    return Setup(
        members,
        grain=Grain.ORACLE,
        channels=ChannelRules(capacity=1, merge_repeats=True),
        budgets=Budgets(writes=4, crashes=1, restarts=1, disconnects=2, elections=2, syncs=1),
        zab=RULES,
        prologue=(Prologue(tuple(sorted(VIEW.members))),),
        clients_anywhere=True,
        discovery_in_one_step=True,
    )


def servers() -> Iterator[tuple[Server, random.Random]]:
    """The servers in every state of some random runs, with the chance that chose the run."""
    model = ensemble("runs", setup(), ())
    for seed in range(RUNS):
        chance, row = random.Random(seed), model.initial()
        for _ in range(MOVES):
            after = [row for _, row in successors(model, row)]
            if not after:
                break
            row = chance.choice(after)
            for value in row:
                if isinstance(value, Server):
                    yield value, chance


def likely(server: Server, chance: random.Random) -> list[Event]:
    """Events that a busy server may get one after another, some of them impossible or unexpected."""
    part = server.zab
    events: list[Event] = []
    written = 0
    if isinstance(part, Leader):
        proposed = part.last_proposed
        acked = {handler.sid: part.committed for handler in part.handlers}
        for _ in range(chance.randint(2, LONGEST)):
            kind = chance.random()
            if kind < 0.3:
                events.append(ClientWrite(f"w{len(events)}"))
                proposed += 1
            elif kind < 0.6:
                events.append(Synced())
                written += 1
            elif kind < 0.9 and acked:
                sid = chance.choice(sorted(acked))
                acked[sid] += 1
                events.append(Receive(sid, Ack(acked[sid])))
            elif kind < 0.95 and acked:
                events.append(Receive(chance.choice(sorted(acked)), QuorumRequest("forwarded")))
            else:
                events.append(
                    chance.choice([Tick(), ClientSync(), Receive(2, QuorumPing()), Receive(9, Ack(proposed))])
                )
    elif isinstance(part, Learner):
        last = last_logged(server.durable, part.queue)
        last = last if last >= make_zxid(part.epoch) else make_zxid(part.epoch)
        open_ones = list(part.pending)
        if part.phase is not LearnerPhase.BROADCAST:
            open_ones = [txn.zxid for txn in part.not_logged]
            last = part.last_queued or last
        for _ in range(chance.randint(2, LONGEST)):
            kind = chance.random()
            if kind < 0.35:
                last += 1 + (chance.random() < 0.03)
                packet = Inform if server.sid in VIEW.observers else Proposal
                events.append(Receive(part.leader, packet(Txn(last, f"p{last}"))))
                open_ones += [last] if packet is Proposal else []
            elif kind < 0.6:
                events.append(Synced())
            elif kind < 0.9 and open_ones:
                events.append(Receive(part.leader, Commit(open_ones.pop(0))))
            else:
                unknown = Commit(last + 7)  # ends the learner
                packets = (Receive(part.leader, packet) for packet in (QuorumPing(), unknown))
                events.append(chance.choice([ClientWrite("mine"), ClientSync(), *packets]))
    return events


def one_by_one(
    server: Server, events: Sequence[Event], rules: ElectionRules = ANY_ROUND
) -> tuple[Server, tuple[Effects, ...]]:
    """The state after all events up to one that is impossible, and the effects of each."""
    effects: list[Effects] = []
    for event in events:
        result = spec_server.step(server, event, rules, RULES)
        if result is None:
            break
        server = result.state
        effects.append(result.effects)
    return server, tuple(effects)


def together(
    server: Server, events: Sequence[Event], rules: ElectionRules = ANY_ROUND
) -> tuple[Server, tuple[Effects, ...], int]:
    """The same by `step_all`, as a node calls it, and the number of its calls."""
    effects: tuple[Effects, ...] = ()
    calls = 0
    while len(effects) < len(events):
        steps = spec_server.step_all(server, events[len(effects) :], rules, RULES)
        if steps is None:
            break
        calls += 1
        server, effects = steps.state, effects + steps.effects
    return server, effects, calls


def test_many_events_at_once_are_the_same_as_one_by_one() -> None:
    handled: Counter[LeaderPhase | LearnerPhase] = Counter()
    held = committed = 0
    for server, chance in servers():
        for _ in range(LISTS):
            events = likely(server, chance)
            before = server.zab
            if before is None or not events:
                continue
            state, effects, _ = together(server, events)
            assert (state, effects) == one_by_one(server, events), (server, events)
            handled[before.phase] += len(effects) > 1
            if isinstance(before, Leader) and isinstance(state.zab, Leader):
                committed += state.zab.committed > before.committed
                held += state.zab.handlers != before.handlers
    phases = (LeaderPhase.BROADCAST, LearnerPhase.SYNCHRONIZATION, LearnerPhase.SYNCED, LearnerPhase.BROADCAST)
    assert all(handled[phase] > 50 for phase in phases), handled
    assert committed > 50
    assert held > 0


def test_a_leader_whose_epoch_ends_among_many_events_has_what_it_has_logged() -> None:
    leaders = [server for server, _ in servers() if isinstance(server.zab, Leader) and server.zab.serves]
    assert leaders
    for server in leaders:
        assert isinstance(server.zab, Leader)
        last_but_one = make_zxid(server.zab.epoch, LAST_COUNTER - 1)
        part = replace(server.zab, committed=last_but_one, outstanding=(), queue=(), commits=())
        before = replace(server, zab=part)
        events = [ClientWrite("last"), Synced(), ClientWrite("beyond"), ClientSync()]
        state, effects, calls = together(before, events)
        assert (state, effects) == one_by_one(before, events)
        assert state.zab is None
        assert calls == 1
        assert [txn.value for txn in state.durable.log][-1:] == ["last"]


def test_a_serving_leader_handles_a_round_of_writes_in_one_step() -> None:
    """What a healthy server does all the time is handled at once, so that a node is fast."""
    leaders = [server for server, _ in servers() if isinstance(server.zab, Leader) and server.zab.serves]
    assert leaders
    for server in leaders:
        assert isinstance(server.zab, Leader)
        learners = [handler.sid for handler in server.zab.handlers if handler.stage is Stage.SERVING]
        zxid = server.zab.last_proposed + 1
        acks = [Receive(sid, Ack(zxid)) for sid in learners]
        synced = [Synced()] * (len(server.zab.queue) + 1)
        events = [ClientWrite("a"), *synced, *acks]
        _, effects, calls = together(server, events)
        assert (len(effects), calls) == (len(events), 1)


def test_an_impossible_last_event_takes_no_other_one_with_it() -> None:
    """A COMMIT of an unknown proposal ends a follower, which cannot look for a leader beyond the last round."""
    followers = [
        server for server, _ in servers()
        if isinstance(server.zab, Learner) and server.zab.serves and server.sid in VIEW.voters
    ]  # fmt: skip
    assert followers
    for server in followers:
        part = server.zab
        assert isinstance(part, Learner) and server.election is not None
        zxid = max(last_logged(server.durable, part.queue), make_zxid(part.epoch)) + 1
        events = [Receive(part.leader, Proposal(Txn(zxid, "p"))), Receive(part.leader, Commit(zxid + 1))]
        last_round = ElectionRules(round_limit=server.election.round)
        state, effects, _ = together(server, events, last_round)
        assert (state, effects) == one_by_one(server, events, last_round)
        assert len(effects) == 1
