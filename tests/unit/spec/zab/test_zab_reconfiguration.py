"""A reconfiguration at one server: what a leader refuses, which quorums a proposal needs, and when a view is active.

Expected values are from ZooKeeper 3.9.5: `PrepRequestProcessor.pRequest2Txn`, `Leader.propose`, `tryToCommit` and
`getDesignatedLeader`, `Learner.syncWithLeader`, `Follower.processPacket`, `QuorumPeer.processReconfig`.
"""

import pytest
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Configure, ConfigureNext, Persist, Send
from spec.election.state import Peer
from spec.election.vote import ServerState
from spec.quorum import MembershipChange, Reconfiguration, View, changed, hierarchical_view, majority_view
from spec.server import Server, crash, start, step
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab import leader as spec_leader
from spec.zab import reconfiguration
from spec.zab.events import ClientWrite, Receive, ZabEvent
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    CommitAndActivate,
    Diff,
    FollowerInfo,
    Inform,
    InformAndActivate,
    LeaderInfo,
    NewLeader,
    Proposal,
    UpToDate,
)
from spec.zab.reconfiguration import Refused
from spec.zab.state import Handler, Leader, LeaderPhase, Learner, LearnerPhase, Outstanding, Stage, ZabResult, ZabRules

RULES = ZabRules(asynchronous_disk=False)
OLD = majority_view((1, 2, 3), version=make_zxid(1))
FIRST, SECOND = make_zxid(1, 1), make_zxid(1, 2)
ADD_4 = MembershipChange(voters=frozenset({4}))
FOUR = majority_view((1, 2, 3, 4), version=FIRST)


def peer(sid: int = 3, view: View = OLD, last_seen: View | None = None) -> Peer:
    return Peer(sid, view, Durable(1, 1), last_seen=last_seen)


def leader(*followers: int, observers: tuple[int, ...] = ()) -> Leader:
    handlers = [Handler(sid, Stage.SERVING, sid in observers) for sid in sorted((*followers, *observers))]
    return Leader(LeaderPhase.BROADCAST, 1, (), tuple(handlers), committed=make_zxid(1))


def stepped(now: Peer, before: Leader, event: ZabEvent, rules: ZabRules) -> ZabResult:
    result = spec_leader.step(now, before, event, rules)
    assert result is not None
    return result


def answer(change: MembershipChange, *followers: int, by: Peer | None = None) -> View | Refused:
    done = reconfiguration.proposed(by or peer(), leader(*followers), change, FIRST, RULES)
    return done if isinstance(done, Refused) else done.view


def sent(effects: tuple[object, ...]) -> list[tuple[int, object]]:
    return [(each.peer, each.message) for each in effects if isinstance(each, Send)]


# The new view.


def test_the_version_of_a_new_view_is_the_zxid_of_its_proposal():
    assert changed(OLD, ADD_4, FIRST) == FOUR


def test_servers_leave_before_others_join_so_one_in_both_sets_stays():
    both = MembershipChange(observers=frozenset({3}), leaving=frozenset({3}))
    assert changed(OLD, both, FIRST) == majority_view((1, 2), (3,), FIRST)


def test_a_leader_refuses_a_second_reconfiguration_while_one_is_pending():
    assert answer(ADD_4, 1, 2, 4, by=peer(last_seen=FOUR)) is Refused.IN_PROGRESS


def test_a_leader_refuses_a_view_with_one_voter():
    assert answer(MembershipChange(leaving=frozenset({1, 2})), 1, 2) is Refused.TOO_FEW_VOTERS


def test_a_leader_refuses_a_change_of_groups_and_weights():
    groups = hierarchical_view({1: (1, 2, 3)}, version=make_zxid(1))
    assert answer(ADD_4, 1, 2, by=peer(view=groups)) is Refused.NOT_A_MAJORITY_SYSTEM


def test_a_leader_whose_view_has_no_version_refuses_every_change():
    assert answer(ADD_4, 1, 2, by=peer(view=majority_view((1, 2, 3)))) is Refused.DISABLED


def test_a_joiner_need_not_run_if_the_others_are_a_quorum_of_the_new_view():
    assert answer(ADD_4, 1, 2) == FOUR
    assert answer(ADD_4, 1) is Refused.NO_SYNCED_QUORUM  # 1 and 3 are two of four


def test_observers_do_not_count_for_the_quorum_that_a_request_needs():
    change = MembershipChange(voters=frozenset({4, 5}), leaving=frozenset({1, 2}))
    watched = leader(observers=(4, 5))
    assert reconfiguration.proposed(peer(), watched, change, FIRST, RULES) is Refused.NO_SYNCED_QUORUM


# Proposal and commit at the leader.


def test_the_view_is_written_before_the_proposal_is_sent_and_logged():
    done = stepped(peer(), leader(1, 2, 4), ClientWrite(ADD_4), ZabRules())
    kinds = [type(each) for each in done.effects if isinstance(each, ConfigureNext | Send | Persist)]
    assert kinds == [ConfigureNext, Send, Send, Send, Persist]
    assert isinstance(done.state, Leader)
    assert done.state.outstanding == (Outstanding(FIRST, views=(OLD, FOUR)),)


def test_a_refused_change_leaves_the_leader_as_it_is():
    before = leader(1)
    assert stepped(peer(), before, ClientWrite(ADD_4), RULES).state == before


@pytest.mark.parametrize(
    ("acks", "commits"),
    [
        pytest.param((1, 3), False, id="two-of-three-and-two-of-four"),
        pytest.param((3, 4), False, id="one-of-three-beside-the-leader-is-new"),
        pytest.param((1, 3, 4), True, id="two-of-three-and-three-of-four"),
    ],
)
def test_a_reconfiguration_needs_a_quorum_of_both_views(acks: tuple[int, ...], commits: bool):
    *others, last = [sid for sid in acks if sid != 3]
    pending = replace(leader(1, 2, 4), outstanding=(Outstanding(FIRST, (*others, 3), (OLD, FOUR)),))
    now = replace(peer(last_seen=FOUR), durable=Durable(1, 1, log=(Txn(FIRST, Reconfiguration(FOUR)),)))
    done = stepped(now, pending, Receive(last, Ack(FIRST)), RULES)
    assert (Configure(FOUR) in done.effects) is commits
    assert ((1, CommitAndActivate(FIRST, 3)) in sent(done.effects)) is commits


def test_a_leader_without_a_vote_designates_one_that_acknowledged_the_view():
    without_3 = majority_view((1, 2, 4, 5), version=FIRST)
    acks = (2, 3, 4, 5)
    assert reconfiguration.designated_leader(peer(), without_3, acks, (), RULES) == 2
    later = (Outstanding(FIRST + 1, (3, 4), (without_3,)),)
    assert reconfiguration.designated_leader(peer(), without_3, acks, later, RULES) == 4
    assert reconfiguration.designated_leader(peer(), FOUR, acks, later, RULES) == 3


def test_a_leader_without_a_vote_in_the_new_view_commits_nothing_more():
    retired = replace(leader(1, 2), successor=1, outstanding=(Outstanding(FIRST, (3,)),))
    assert stepped(peer(), retired, Receive(1, Ack(FIRST)), RULES).state == retired


def test_a_held_activation_follows_the_commits_that_were_held_before_it():
    """Ahead of the COMMIT of its predecessor it is out of order, and a real follower exits with 12."""
    holding = ZabRules(asynchronous_disk=False, hold_commits=True)
    four = majority_view((1, 2, 3, 4), version=SECOND)
    log = (Txn(FIRST, "x"), Txn(SECOND, Reconfiguration(four)))
    now = replace(peer(last_seen=four), durable=Durable(1, 1, log=log))
    pending = (Outstanding(FIRST, (3,)), Outstanding(SECOND, (3,), (OLD, four)))
    syncing = replace(leader(1, 2), handlers=(*leader(1, 2).handlers, Handler(4, Stage.SYNCING)), outstanding=pending)
    to_4: list[object] = []
    for source, zxid in ((1, FIRST), (1, SECOND), (2, SECOND), (4, make_zxid(1))):
        done = spec_leader.step(now, syncing, Receive(source, Ack(zxid)), holding)
        assert done is not None and isinstance(done.state, Leader)
        syncing = done.state
        to_4 += [packet for sid, packet in sent(done.effects) if sid == 4]
    assert to_4 == [UpToDate(), Commit(FIRST), CommitAndActivate(SECOND, 3)]


def test_observers_hear_of_the_new_view_with_the_transaction():
    pending = replace(leader(1, 2, observers=(7,)), outstanding=(Outstanding(FIRST, (1, 3), (OLD, FOUR)),))
    now = replace(peer(last_seen=FOUR), durable=Durable(1, 1, log=(Txn(FIRST, Reconfiguration(FOUR)),)))
    done = stepped(now, pending, Receive(2, Ack(FIRST)), RULES)
    assert (7, InformAndActivate(Txn(FIRST, Reconfiguration(FOUR)), 3)) in sent(done.effects)


# The learner, and the whole server.


def following(sid: int, view: View = OLD) -> Server:
    """A server that follows server 3 in epoch 1 and serves."""
    begun = start(Server(sid, view, Durable(1, 1)), zab=RULES)
    assert begun is not None and begun.state.election is not None
    election = replace(begun.state.election, state=ServerState.FOLLOWING)
    vote = replace(election.vote, leader=3)
    serving = Learner(3, LearnerPhase.BROADCAST, 1)
    return replace(begun.state, election=replace(election, vote=vote, announced=None), zab=serving)


def after(server: Server, *packets: object, rules: ZabRules = RULES) -> Server:
    for packet in packets:
        done = step(server, Receive(3, packet), zab=rules)  # type: ignore[arg-type]
        assert done is not None
        server = done.state
    return server


def test_a_view_is_seen_with_its_proposal_and_active_with_its_commit():
    proposed = after(following(1), Proposal(Txn(FIRST, Reconfiguration(FOUR))))
    assert (proposed.view, proposed.last_seen) == (OLD, FOUR)
    committed = after(proposed, CommitAndActivate(FIRST, 3))
    assert (committed.view, committed.last_seen) == (FOUR, None)
    assert committed.zab is not None and committed.zab.serves


def test_a_crash_keeps_both_views():
    crashed = crash(after(following(1), Proposal(Txn(FIRST, Reconfiguration(FOUR)))), RULES)
    assert crashed is not None
    again = start(crashed, zab=RULES)
    assert again is not None
    assert (again.state.view, again.state.last_seen) == (OLD, FOUR)
    assert not again.state.peer.has_all_quorums({1, 2})
    assert again.state.peer.has_all_quorums({1, 2, 4})


def test_the_designated_leader_leads_without_an_election():
    without_3 = majority_view((1, 2), version=FIRST)
    ready = after(following(1), Proposal(Txn(FIRST, Reconfiguration(without_3))), CommitAndActivate(FIRST, 1))
    assert ready.election is not None and ready.election.state is ServerState.LEADING
    assert isinstance(ready.zab, Leader) and ready.zab.phase is LeaderPhase.FOLLOWERINFO


def test_the_others_follow_the_designated_leader_without_an_election():
    without_3 = majority_view((1, 2), version=FIRST)
    ready = after(following(2), Proposal(Txn(FIRST, Reconfiguration(without_3))), CommitAndActivate(FIRST, 1))
    assert ready.election is not None and ready.election.state is ServerState.FOLLOWING
    assert isinstance(ready.zab, Learner) and (ready.zab.leader, ready.zab.phase) == (1, LearnerPhase.DISCOVERY)


def test_a_voter_that_becomes_an_observer_joins_its_leader_again():
    watching = majority_view((2, 3), (1,), FIRST)
    ready = after(following(1), Proposal(Txn(FIRST, Reconfiguration(watching))), CommitAndActivate(FIRST, 3))
    assert ready.election is not None and ready.election.state is ServerState.OBSERVING
    assert isinstance(ready.zab, Learner) and ready.zab.phase is LearnerPhase.DISCOVERY


def joining(*packets: object) -> Server:
    """Server 1 from FOLLOWERINFO on, in the epoch that it has accepted."""
    server = replace(following(1), zab=Learner(3))
    return after(server, LeaderInfo(1), Diff(make_zxid(1)), *packets)


def test_uptodate_activates_the_view_of_a_leader_that_completed_it():
    history = (Proposal(Txn(FIRST, Reconfiguration(FOUR))), Commit(FIRST), NewLeader(1, FOUR))
    assert joining(*history).view == OLD
    assert joining(*history, UpToDate()).view == FOUR


def test_uptodate_does_not_activate_a_view_whose_transaction_is_a_proposal():
    pending = (Proposal(Txn(FIRST, Reconfiguration(FOUR))), NewLeader(1, FOUR), UpToDate())
    server = joining(*pending)
    assert (server.view, server.last_seen) == (OLD, FOUR)
    assert after(server, CommitAndActivate(FIRST, 3)).view == FOUR


def test_a_learner_that_missed_a_committed_view_gets_it_although_another_one_is_pending():
    """With the first view alone, {1, 2} would elect a leader beside one of {4, 5}, a quorum of the committed view."""
    moved, back = majority_view((3, 4, 5), version=FIRST), majority_view((1, 2, 3), version=SECOND)
    history = (Proposal(Txn(FIRST, Reconfiguration(moved))), Commit(FIRST))
    synchronised = (*history, Proposal(Txn(SECOND, Reconfiguration(back))), NewLeader(1, moved))
    assert (joining(*synchronised).view, joining(*synchronised).last_seen) == (OLD, moved)
    server = joining(*synchronised, UpToDate())
    assert (server.view, server.last_seen) == (moved, back)
    assert not server.peer.has_all_quorums({1, 2})
    assert after(server, CommitAndActivate(SECOND, 3)).view == back


def test_a_release_sees_a_pending_view_before_uptodate_and_forgets_the_committed_one():
    moved, back = majority_view((3, 4, 5), version=FIRST), majority_view((1, 2, 3), version=SECOND)
    waits = joining(Proposal(Txn(FIRST, Reconfiguration(moved))), Commit(FIRST), NewLeader(1, moved))
    later = Proposal(Txn(SECOND, Reconfiguration(back)))
    assert after(waits, later).last_seen == moved
    assert after(waits, later, rules=replace(RULES, sees_early=True)).last_seen == back


def test_an_observer_counts_a_reconfiguration_in_its_check_of_the_order_and_the_variant_does_not():
    """`enforceContinuousProposal` of 3.9.4 and 3.9.5 is not called at INFORMANDACTIVATE."""
    watched, smaller = majority_view((1, 2, 3), (4,), make_zxid(1)), majority_view((2, 3), (4,), SECOND)
    change, third = Txn(SECOND, Reconfiguration(smaller)), make_zxid(1, 3)
    packets = (Inform(Txn(FIRST, 1)), InformAndActivate(change, 3), Inform(Txn(third, 2)))
    joining_4 = after(replace(following(4, watched), zab=Learner(3)), LeaderInfo(1), Diff(make_zxid(1)))
    joined = after(joining_4, *packets).zab
    assert isinstance(joined, Learner) and [txn.zxid for txn in joined.not_logged] == [FIRST, SECOND, third]
    variant = replace(RULES, variants=frozenset({Variant.ACTIVATION_NOT_COUNTED}))
    assert after(joining_4, *packets[:2], rules=variant).view == smaller
    assert after(joining_4, *packets, rules=variant).zab is None


def test_a_leader_that_serves_sends_its_active_view_to_a_learner_and_the_pending_one_as_a_proposal():
    txn = Txn(FIRST, Reconfiguration(FOUR))
    serving = replace(leader(2, 4), outstanding=(Outstanding(FIRST, (3,), (OLD, FOUR)),))
    now = replace(peer(last_seen=FOUR), durable=Durable(1, 1, log=(txn,)))
    registered = spec_leader.step(now, serving, Receive(1, FollowerInfo(1)), RULES)
    assert registered is not None
    joined = spec_leader.step(now, registered.state, Receive(1, AckEpoch(make_zxid(1), 1)), RULES)
    assert joined is not None
    packets = [packet for _, packet in sent(joined.effects)]
    assert packets[-2:] == [Proposal(txn), NewLeader(1, OLD)]


def test_an_older_view_in_newleader_replaces_a_later_one_that_was_only_seen():
    server = replace(following(1), zab=Learner(3), last_seen=FOUR)
    ready = after(server, LeaderInfo(1), Diff(make_zxid(1)), NewLeader(1, OLD), UpToDate())
    assert (ready.view, ready.last_seen) == (OLD, None)


def test_a_leader_refuses_a_learner_with_a_later_active_view():
    established = replace(following(3), zab=leader(1, 2))
    refused = step(established, Receive(4, FollowerInfo(1, config_version=FIRST)), zab=RULES)
    known = step(established, Receive(4, FollowerInfo(1, config_version=OLD.version)), zab=RULES)
    assert refused is not None and known is not None
    assert isinstance(refused.state.zab, Leader) and refused.state.zab.handler(4) is None
    assert isinstance(known.state.zab, Leader) and known.state.zab.handler(4) is not None


def test_a_request_of_a_client_is_a_write_whose_value_is_the_change():
    established = replace(following(3), zab=leader(1, 2, 4))
    done = step(established, ClientWrite(ADD_4), zab=RULES)
    assert done is not None
    assert (done.state.view, done.state.last_seen) == (OLD, FOUR)
    assert (1, Proposal(Txn(FIRST, Reconfiguration(FOUR)))) in sent(done.effects)


# A view that a node has computed, and the first version of a file without one.


def test_a_node_proposes_the_view_that_it_has_computed():
    asked = Reconfiguration(FOUR, "the change of the tree")
    done = stepped(peer(), leader(1, 2, 4), ClientWrite(asked), RULES)
    assert (1, Proposal(Txn(FIRST, asked))) in sent(done.effects)
    assert ConfigureNext(FOUR) in done.effects


def test_a_computed_view_without_a_synced_quorum_is_not_proposed():
    assert stepped(peer(), leader(1), ClientWrite(Reconfiguration(FOUR)), RULES).effects == ()


def test_a_new_leader_gives_a_file_without_a_version_that_of_its_epoch():
    bare, rules = majority_view((1, 2, 3)), ZabRules(asynchronous_disk=False, first_version=True)
    first = majority_view((1, 2, 3), version=make_zxid(2))
    begun = spec_leader.begin(peer(view=bare), rules)
    registered = spec_leader.step(peer(view=bare), begun.state, Receive(1, FollowerInfo(1)), rules)
    assert registered is not None and ConfigureNext(first) in registered.effects
    now = replace(peer(view=bare, last_seen=first), durable=registered.durable)
    established = spec_leader.step(now, registered.state, Receive(1, AckEpoch(0, 1)), rules)
    assert established is not None and (1, NewLeader(2, first)) in sent(established.effects)


@pytest.mark.parametrize(
    ("view", "last_seen", "rules"),
    [
        (OLD, None, ZabRules(first_version=True)),
        (majority_view((1, 2, 3)), FOUR, ZabRules(first_version=True)),
        (majority_view((1, 2, 3)), None, ZabRules()),
    ],
    ids=["it has one", "it has seen a later one", "reconfiguration is off"],
)
def test_no_other_view_gets_a_first_version(view: View, last_seen: View | None, rules: ZabRules):
    assert reconfiguration.first_version(peer(view=view, last_seen=last_seen), 2, rules) is None
