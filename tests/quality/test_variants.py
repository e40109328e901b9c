"""The two known defects of ZooKeeper's election: each is reproduced by its variant, and absent without it.

ZOOKEEPER-1419: the server id breaks a tie of zxids regardless of the epochs, so that two votes can each be better than
the other. No state is wrong, but the election need not terminate. ZOOKEEPER-1514: votes that servers sent for a leader
in an earlier round make it a leader again.
"""

from itertools import product

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from checker.engine import Exploration, Model, Row, Stop
from checker.engine.search import explore
from checker.engine.semantics import successors
from checker.job import Job, Verdict
from checker.report import judge
from checker.scenario import from_text
from spec.durable import Durable
from spec.effects import Observe, ServerStep, Timer
from spec.election import (
    Deliver,
    Election,
    ElectionRules,
    Fired,
    Led,
    Notification,
    Peer,
    QuorumLost,
    ServerState,
    Start,
    Variant,
    Vote,
    is_better,
    step,
)
from spec.quorum import majority_view

THREE = majority_view({1, 2, 3})
CYCLES = frozenset({Variant.VOTE_ORDER_CYCLES})
OLD_ROUNDS = frozenset({Variant.LEADER_OF_AN_OLD_ROUND})


def zoo_cfg(*voters: int) -> str:
    return "initLimit=5\nsyncLimit=2\n" + "".join(f"server.{sid}=zoo{sid}:2888:3888\n" for sid in voters)


FILES = {"zoo-2.cfg": zoo_cfg(1, 2), "zoo-3.cfg": zoo_cfg(1, 2, 3)}


def ran(text: str) -> tuple[Job, Exploration]:
    job = from_text(text, FILES.get)
    return job, explore(job.model, job.limits)


# -- ZOOKEEPER-1419: the order -------------------------------------------------------------------------------

votes = st.builds(Vote, leader=st.integers(1, 3), zxid=st.integers(0, 3), peer_epoch=st.integers(0, 3))
EXAMPLES = settings(max_examples=2000, deadline=None, derandomize=True, database=None)


def each_better(one: Vote, other: Vote, variants: frozenset[Variant]) -> bool:
    return is_better(THREE, one, other, variants) and is_better(THREE, other, one, variants)


def test_1419_two_votes_can_each_be_better_than_the_other() -> None:
    """The least such pair: the same data; one server has joined a later epoch and the other has a higher id."""
    one, other = find(
        st.tuples(votes, votes).filter(lambda pair: pair[0].peer_epoch > pair[1].peer_epoch),
        lambda pair: each_better(*pair, CYCLES),
        settings=EXAMPLES,
    )

    assert one.zxid == other.zxid
    assert one.leader < other.leader
    assert is_better(THREE, one, other)
    assert not is_better(THREE, other, one)


def test_1419_it_is_no_other_order_but_a_contradiction() -> None:
    """Where it ranks two votes differently from the correct order, it also ranks them in the opposite way."""
    every = [Vote(*fields) for fields in product(range(1, 4), range(3), range(3))]
    differ = [
        (one, other)
        for one, other in product(every, every)
        if is_better(THREE, one, other, CYCLES) != is_better(THREE, one, other)
    ]

    assert differ
    assert all(each_better(one, other, CYCLES) for one, other in differ)


@given(votes, votes)
@settings(print_blob=True)
def test_1419_within_one_epoch_the_order_was_right(one: Vote, other: Vote) -> None:
    """So only servers that had lived through different epochs could expose the defect."""
    same_epoch = Vote(other.leader, other.zxid, one.peer_epoch)

    assert is_better(THREE, one, same_epoch, CYCLES) == is_better(THREE, one, same_epoch)


# -- ZOOKEEPER-1419: elections without end -------------------------------------------------------------------

TWO_EPOCHS = """\
file: zoo-2.cfg
servers:
  1: {epoch: 2, zxid: 1:5}
  2: {epoch: 1, zxid: 1:5}
rounds: 1
always: [OneLeader]
sometimes: [Elected, AllSettled]
"""
WITH_1419 = "variants: [ZOOKEEPER-1419]\n"
FAST = "network: fast\n"


def has_endless_run(model: Model) -> bool:
    """Whether some state can occur again. States without a predecessor are removed repeatedly; a cycle remains."""
    following: dict[Row, list[Row]] = {}
    found = [model.initial()]
    while found:
        row = found.pop()
        if row not in following:
            following[row] = [after for _, after in successors(model, row)]
            found += following[row]
    arrows = dict.fromkeys(following, 0)
    for rows in following.values():
        for row in rows:
            arrows[row] += 1
    free = [row for row, count in arrows.items() if not count]
    while free:
        for row in following.pop(free.pop()):
            arrows[row] -= 1
            if not arrows[row]:
                free.append(row)
    return bool(following)


@pytest.mark.parametrize("network", ["", FAST], ids=["any network", "fast network"])
def test_1419_two_servers_can_trade_votes_for_ever(network: str) -> None:
    assert has_endless_run(ran(TWO_EPOCHS + network + WITH_1419)[0].model)
    assert not has_endless_run(ran(TWO_EPOCHS + network)[0].model)


def test_1419_without_it_no_election_of_three_goes_on_for_ever() -> None:
    text = TWO_EPOCHS.replace("zoo-2", "zoo-3").replace("rounds", "  3: {epoch: 1, zxid: 1:6}\nrounds")

    assert not has_endless_run(ran(text + "channel: {capacity: 1}\n")[0].model)


def test_1419_on_a_fast_network_two_servers_never_settle_and_the_verdict_says_that_nobody_is_elected() -> None:
    """Every vote that arrives is the better one, so no wait before a decision ends. Without the variant, 1 leads."""
    job, exploration = ran(TWO_EPOCHS + FAST + WITH_1419)
    judgement = judge(job, exploration, job.model.actions)

    assert (exploration.stop, judgement.verdict) == (Stop.EXHAUSTED, Verdict.VACUOUS)
    assert "Elected was never witnessed" in judgement.reasons
    job, exploration = ran(TWO_EPOCHS + FAST)
    assert judge(job, exploration, job.model.actions).verdict is Verdict.PASSED
    assert exploration.found["Elected"].finding.values == (("leader", 1),)


def test_1419_a_run_of_three_servers_in_which_all_change_their_votes_for_ever() -> None:
    """Each message arrives once per lap; after a few laps the whole ensemble is in the same state as two laps earlier.

    1 has joined a later epoch, 2 has more data, and 3 has the higher id: 1 beats 2, 2 beats 3, and 3 beats 1.
    """
    text = """\
file: zoo-3.cfg
servers:
  1: {epoch: 2, zxid: 1:5}
  2: {epoch: 1, zxid: 1:6}
  3: {epoch: 1, zxid: 1:5}
rounds: 1
network: fast
always: [OneLeader]
"""
    job = from_text(text + WITH_1419, FILES.get)
    row, laps = job.model.initial(), []
    for _ in range(8):
        for receiver, sender in ((1, 2), (1, 3), (2, 3), (2, 1), (3, 1), (3, 2)):
            steps = list(successors(job.model, row))
            assert {move.action for move, _ in steps} == {"deliver"}, "nobody ever gets to decide"
            row = next(after for move, after in steps if move.arguments[:2] == (sender, receiver))
        laps.append(row)

    assert laps[-1] == laps[-3]
    before, after = ([server.election.vote.leader for server in lap[:3]] for lap in laps[-2:])
    assert all(one != other for one, other in zip(before, after, strict=True)), "and each has another vote in between"


# -- ZOOKEEPER-1514 ------------------------------------------------------------------------------------------


def run(*events: object, variants: frozenset[Variant] = frozenset()) -> ServerStep[Election]:
    """Return the last step of server 3 of three, from its start."""
    peer, election = Peer(3, THREE, Durable()), None
    done = None
    for event in (Start(THREE), *events):
        done = step(peer, election, event, ElectionRules(variants=variants))  # type: ignore[arg-type]
        assert done is not None, f"{event} is impossible here"
        election = done.state
    assert done is not None
    return done


def says_it_follows_3(sid: int, election_round: int) -> Deliver:
    return Deliver(sid, Notification(ServerState.FOLLOWING, Vote(3, 0, 0), election_round))


LED_IN_ROUND_1 = (
    Deliver(1, Notification(ServerState.LOOKING, Vote(3, 0, 0), 1)),
    Fired(Timer.FINALIZE_WAIT),
    QuorumLost(),  # its followers are unreachable, and it is LOOKING again, in round 2
)
OLD_NEWS = (says_it_follows_3(1, 1), says_it_follows_3(2, 1))  # sent before they noticed


def test_1514_what_was_said_in_an_earlier_round_makes_a_server_lead_again() -> None:
    done = run(*LED_IN_ROUND_1, *OLD_NEWS, variants=OLD_ROUNDS)

    assert Observe(Led(server=3, round=1)) in done.effects, "its own round is 2: the election goes backward"
    assert (done.state.state, done.state.round) == (ServerState.LEADING, 1)


def test_1514_without_it_a_server_goes_on_looking() -> None:
    done = run(*LED_IN_ROUND_1, *OLD_NEWS)

    assert (done.state.state, done.state.round) == (ServerState.LOOKING, 2)


def test_1514_what_is_said_in_the_same_round_makes_a_leader_with_or_without_it() -> None:
    same_round = says_it_follows_3(1, 2), says_it_follows_3(2, 2)
    with_it, without_it = run(*LED_IN_ROUND_1, *same_round, variants=OLD_ROUNDS), run(*LED_IN_ROUND_1, *same_round)

    assert with_it == without_it
    assert with_it.state.state is ServerState.LEADING


# Leader 3 is cut off, has lost its quorum and is LOOKING again. The links heal, and 3 sends its vote again. 1 and 2
# still follow 3, and say so. Only then do they give it up, and elect 2. While 2 leads with 1, 3 must not lead.
CUT_OFF_AND_BACK = """\
file: zoo-3.cfg
servers: [1, 2, 3]
history: [{start: [1, 2, 3]}]
faults: {partitions: 1, heals: 1, notification_timeouts: 1}
opening: [{cut_off: [3]}, {settle: [3]}]
rounds: 2
channel: {capacity: 1}
always: [{NeverStands: {1: FOLLOWING 2, 2: LEADING, 3: LEADING}}]
sometimes: [{Stands: {1: FOLLOWING 2, 2: LEADING, 3: FOLLOWING 2}}, {Leads: 3}]
"""


def test_1514_an_old_leader_leads_beside_the_new_one() -> None:
    """The shortest run has 17 steps.

    Cut, loss of the quorum, healing and timeout are 4. The two new connections to 3 first carry the last vote of the
    first round again, as `QuorumCnxManager.SendWorker.run` does: 2 arrivals. Two hear 3 and answer (2), two answers
    arrive (2), two give 3 up (2), three votes arrive (3), and two decide (2).
    """
    _, exploration = ran(CUT_OFF_AND_BACK + "variants: [ZOOKEEPER-1514]\n")
    (found,) = exploration.violations

    assert found.depth == 4 + 2 + 2 + 2 + 2 + 3 + 2
    led_in = [row for _, row in found.path][-1][2].election.round
    assert led_in == 1, "in the round of the election that is over"


def test_1514_without_it_the_old_leader_joins_the_new_one_or_leads_again_with_both() -> None:
    job, exploration = ran(CUT_OFF_AND_BACK)
    judgement = judge(job, exploration, job.model.actions)

    assert (exploration.stop, exploration.violations) == (Stop.EXHAUSTED, [])
    assert len(exploration.found) == 2, "both ends are possible"
    assert judgement.verdict is Verdict.PASSED
