"""Several events in one step are the same as a step for each: states and effects, on states of whole ensembles.

The states are those of random runs of the checker's ensemble. At each of them, every list of likely events of a server
is handled by `spec.batch.step_all` and by `spec.server.step`, one by one.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from checker.engine.semantics import successors
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from spec import server as spec_server
from spec.batch import step_all
from spec.effects import Effects
from spec.election.channel import ChannelRules
from spec.quorum import majority_view
from spec.server import Event, Server
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.events import ClientSync, ClientWrite, Receive, Synced, Tick
from spec.zab.packets import Ack, Commit, Inform, Proposal, QuorumPing, QuorumRequest
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, Stage, ZabRules, last_logged

VIEW = majority_view([1, 2, 3], [4])
RULES = ZabRules(hold_commits=True, observers_log_first=True)
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
                events.append(chance.choice([ClientWrite("mine"), ClientSync(), Receive(part.leader, QuorumPing())]))
    return events


def one_by_one(server: Server, events: Sequence[Event]) -> tuple[Server, tuple[Effects, ...]] | None:
    """The state after all events and the effects of each; None if one is impossible."""
    effects = []
    for event in events:
        done = spec_server.step(server, event, zab=RULES)
        if done is None:
            return None
        server = done.state
        effects.append(done.effects)
    return server, tuple(effects)


def test_a_batch_is_the_same_as_its_events_one_by_one() -> None:
    batches: Counter[LeaderPhase | LearnerPhase] = Counter()
    held = committed = 0
    for server, chance in servers():
        for _ in range(LISTS):
            events = likely(server, chance)
            done = step_all(server, events, RULES)
            if done is None or server.zab is None:
                continue
            assert (done.state, done.effects) == one_by_one(server, events), (server, events)
            batches[server.zab.phase] += 1
            before, after = server.zab, done.state.zab
            if isinstance(before, Leader) and isinstance(after, Leader):
                committed += after.committed > before.committed
                held += after.handlers != before.handlers
    together = (LeaderPhase.BROADCAST, LearnerPhase.SYNCHRONIZATION, LearnerPhase.SYNCED, LearnerPhase.BROADCAST)
    assert all(batches[phase] > 50 for phase in together), batches
    assert committed > 50
    assert held > 0


def test_a_serving_ensemble_needs_no_single_steps() -> None:
    """What a healthy server does all the time is handled together, so that a node is fast."""
    leaders = [server for server, _ in servers() if isinstance(server.zab, Leader) and server.zab.serves]
    assert leaders
    for server in leaders:
        assert isinstance(server.zab, Leader)
        learners = [each.sid for each in server.zab.handlers if each.stage is Stage.SERVING]
        zxid = server.zab.last_proposed + 1
        acks = [Receive(sid, Ack(zxid)) for sid in learners]
        synced = [Synced()] * (len(server.zab.queue) + 1)
        assert step_all(server, [ClientWrite("a"), *synced, *acks], RULES) is not None


def test_other_rules_are_left_to_single_steps() -> None:
    """Variants, and a disk or a commit processor that is not the node's, have one implementation only."""
    others = (
        ZabRules(asynchronous_disk=False),
        ZabRules(asynchronous_commits=True),
        ZabRules(variants=frozenset({Variant.ACK_BEFORE_LOG})),
    )
    serving = next(server for server, _ in servers() if isinstance(server.zab, Leader) and server.zab.serves)
    for rules in others:
        assert step_all(serving, [ClientWrite("a"), ClientWrite("b")], rules) is None
