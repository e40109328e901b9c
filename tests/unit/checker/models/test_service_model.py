"""The parts of the service model, each tested separately: leader, servers, watches, connections."""

from typing import Any

import pytest

from checker.engine import Actor, ModelError, Outcome, Send
from checker.models.service import (
    ClientConnection,
    ClientCrash,
    Clocks,
    Commit,
    ConnectionClosed,
    ConnectionLoss,
    ConnectionStart,
    ConnectionState,
    Delivery,
    FaultBudgets,
    LaggingServer,
    Leader,
    Reply,
    SendRequest,
    ServiceSetup,
    SessionExpiry,
    SyncMarker,
    WatchNotification,
    client_of,
    first_tree,
    service,
    session_of,
)
from checker.models.service.messages import (
    AddWatch,
    CloseConnection,
    DeliverMessage,
    DeliverRequest,
    FireWatches,
    ForgetClient,
    Origin,
    Propose,
    RefuseSession,
    ResumeSession,
    SendMessage,
    ServeRequest,
    ServiceAction,
)
from spec.tree.apply import Event, EventType
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, Create2, GetData, SetData, Sync
from spec.tree.watches import WatchKind

LAGGING = ServiceSetup(clients=2, servers=2, lag=True, paths=("/a",))
AT_ONCE = ServiceSetup(clients=2, paths=("/a",))
CREATE = Create2("/e", b"", OPEN_ACL_UNSAFE, 1)
SET = SetData("/a", b"new", -1)
GET = GetData("/a", False)
GET_AND_WATCH = GetData("/a", True)
CHANGED = WatchNotification(EventType.NODE_DATA_CHANGED, "/a")
ANSWER = Reply(GET, Code.OK, None, 0)


def actor(name: str, setup: ServiceSetup) -> Actor:
    return next(each for each in service(setup).actors if each.name == name)


def asked(name: str, value: Any, operation: Any, setup: ServiceSetup = LAGGING) -> Outcome:
    outcome = actor(name, setup).step((value,), operation)
    assert outcome is not None
    return outcome


def sent_to(name: str, outcome: Outcome) -> list[Any]:
    return [send.operation for send in outcome.sends if send.actor == name]


def leader(*sessions: int) -> Leader:
    store = first_tree(LAGGING)
    return Leader(store if not sessions else type(store)(store.nodes, tuple((each, 0) for each in sessions)))


def proposed(*records: Any) -> tuple[LaggingServer, list[Commit]]:
    """Return a server at its first tree, and the commits of these requests of client 1."""
    state, commits = leader(), list[Commit]()
    for record in records:
        outcome = asked("leader", state, Propose(session_of(1), record, Origin(1, 1, record)))
        state = outcome.values[0]
        commits += sent_to("server 1", outcome)
    return LaggingServer(first_tree(LAGGING)), commits


# The leader.


def test_a_commit_goes_to_every_server_and_only_one_of_them_knows_whom_to_answer() -> None:
    outcome = asked("leader", leader(), Propose(session_of(1), SET, Origin(2, 1, SET)))

    (at_1,), (at_2,) = sent_to("server 1", outcome), sent_to("server 2", outcome)
    assert (at_1.zxid, at_1.change) == (at_2.zxid, at_2.change)
    assert (at_1.origin, at_2.origin) == (None, Origin(2, 1, SET))


def test_a_refusal_takes_no_zxid_and_is_known_to_its_own_server_alone() -> None:
    of_another_version = SetData("/a", b"new", 7)
    outcome = asked("leader", leader(), Propose(session_of(1), of_another_version, Origin(2, 1, of_another_version)))

    assert outcome.values == (leader(),)
    assert [send.actor for send in outcome.sends] == ["server 2"]


def test_a_session_that_is_not_open_creates_nothing() -> None:
    outcome = asked("leader", leader(session_of(2)), Propose(session_of(1), CREATE))

    assert outcome.values[0].store.node("/e") is None
    assert outcome.sends == ()


def test_ending_a_session_a_second_time_changes_nothing() -> None:
    once = asked("leader", leader(), Propose(session_of(1), CloseSession())).values[0]

    assert asked("leader", once, Propose(session_of(1), CloseSession())).values == (once,)


def test_without_lag_watchers_are_told_and_the_answer_follows_in_the_same_move() -> None:
    outcome = asked("leader", leader(), Propose(session_of(1), SET, Origin(1, 1, SET)), AT_ONCE)

    assert [send.actor for send in outcome.sends] == ["watches 1", "link 1"]


# Servers that lag.


def test_a_server_answers_reads_from_the_tree_that_it_has() -> None:
    replica, (commit,) = proposed(SET)
    waiting = asked("server 1", replica, commit).values[0]

    (push,) = sent_to("link 2", asked("server 1", waiting, ServeRequest(session_of(2), GET, 2)))
    assert (push.message.reply.data, push.message.zxid) == (b"", 0)


def test_what_waits_is_applied_in_the_order_of_commits() -> None:
    replica, commits = proposed(SET, CREATE)
    for commit in commits:
        replica = asked("server 1", replica, commit).values[0]

    once = asked("server 1", replica, ServiceAction.APPLY).values[0]
    twice = asked("server 1", once, ServiceAction.APPLY).values[0]
    assert (once.zxid, once.store.node("/e")) == (1, None)
    assert (twice.zxid, twice.store.node("/e").data) == (2, b"")


def test_an_applied_transaction_is_told_to_watchers_before_its_client_is_answered() -> None:
    replica, (commit,) = proposed(SET)
    outcome = asked("server 1", asked("server 1", replica, commit).values[0], ServiceAction.APPLY)

    assert [type(send.operation) for send in outcome.sends] == [FireWatches, SendMessage]


def test_a_sync_is_answered_when_what_was_committed_before_it_is_applied() -> None:
    replica, commits = proposed(SET)
    waiting = asked("server 1", replica, commits[0]).values[0]
    outcome = asked("server 1", waiting, ServeRequest(session_of(2), Sync("/a"), 2))
    assert outcome.sends == ()

    (push,) = sent_to("link 2", asked("server 1", outcome.values[0], ServiceAction.APPLY))
    assert push.message.asked == Sync("/a")


def test_a_sync_has_nothing_to_wait_for_where_nothing_waits() -> None:
    outcome = asked("server 1", LaggingServer(first_tree(LAGGING)), ServeRequest(session_of(2), Sync("/a"), 2))

    assert outcome.values == (LaggingServer(first_tree(LAGGING)),)
    assert [type(each) for each in sent_to("link 2", outcome)] == [SendMessage]


def test_who_is_forgotten_is_not_answered_but_what_it_wrote_is_applied() -> None:
    replica, commits = proposed(SET)
    sync = SyncMarker(Origin(1, 1, Sync("/a")))
    waiting = LaggingServer(replica.store, 0, (commits[0], sync))

    (after,) = asked("server 1", waiting, ForgetClient(1)).values
    assert [each.origin for each in after.pending] == [None]
    assert sent_to("link 1", asked("server 1", after, ServiceAction.APPLY)) == []


def test_the_end_of_a_session_closes_its_connection_after_its_events() -> None:
    replica, commits = proposed(CREATE, CloseSession())
    for commit in commits:
        replica = asked("server 1", replica, commit).values[0]
    applied = asked("server 1", replica, ServiceAction.APPLY).values[0]

    outcome = asked("server 1", applied, ServiceAction.APPLY)
    assert outcome.values[0].store.node("/e") is None
    assert [type(send.operation) for send in outcome.sends] == [FireWatches, FireWatches, SendMessage, CloseConnection]


# Watches.


def test_a_watch_is_told_once_and_is_gone() -> None:
    watching = asked("watches 1", frozenset(), AddWatch(1, WatchKind.DATA, "/a")).values[0]
    outcome = asked("watches 1", watching, FireWatches(Event(EventType.NODE_DATA_CHANGED, "/a")))

    assert outcome == Outcome((frozenset(),), (Send("link 1", SendMessage(CHANGED)),))


def test_a_deletion_is_told_once_to_who_watches_data_and_children() -> None:
    watching = frozenset({(1, WatchKind.DATA, "/a"), (1, WatchKind.CHILDREN, "/a")})
    outcome = asked("watches 1", watching, FireWatches(Event(EventType.NODE_DELETED, "/a")))

    assert outcome.values == (frozenset(),)
    assert len(outcome.sends) == 1


def test_an_observer_of_watches_learns_how_many_clients_were_told() -> None:
    setup = ServiceSetup(clients=2, observe_watches=("counter",))
    watching = frozenset({(1, WatchKind.DATA, "/a"), (2, WatchKind.DATA, "/a")})
    outcome = asked("watches 1", watching, FireWatches(Event(EventType.NODE_DATA_CHANGED, "/a")), setup)

    assert [(each.path, each.told) for each in sent_to("counter", outcome)] == [("/a", 2)]


# Connections.

UP = ClientConnection(ConnectionState.UP, session_of(1), 1)


def link(**fields: Any) -> ClientConnection:
    return ClientConnection(**{"state": ConnectionState.UP, "session": session_of(1), "server": 1, **fields})


def test_requests_and_messages_keep_their_order() -> None:
    first = asked("link 1", link(up=(SET, CREATE)), DeliverRequest())
    assert (first.values[0].up, sent_to("server 1", first)) == ((CREATE,), [ServeRequest(session_of(1), SET, 1)])

    heard = asked("link 1", link(down=(CHANGED, ANSWER)), DeliverMessage())
    assert (heard.values[0].down, sent_to("client 1", heard)) == ((ANSWER,), [])
    assert sent_to("library 1", heard) == [Delivery(CHANGED)]


def test_a_read_waits_for_the_writes_of_its_own_connection() -> None:
    behind = asked("link 1", link(up=(SET, GET)), DeliverRequest()).values[0]

    assert actor("link 1", LAGGING).step((behind,), DeliverRequest()) is None


def test_to_ask_without_a_connection_is_a_defect_of_the_clients_model() -> None:
    with pytest.raises(ModelError, match="client 1 asks"):
        asked("link 1", ClientConnection(ConnectionState.DOWN, session_of(1)), SendRequest(SET))


def test_of_a_lost_connection_only_writes_may_still_arrive() -> None:
    lost = asked("link 1", link(up=(GET, SET), down=(ANSWER,)), ServiceAction.DISCONNECT)
    assert lost.values == (ClientConnection(ConnectionState.DOWN, session_of(1), stray=(SET,)),)
    assert sent_to("library 1", lost) == [ConnectionLoss()]
    assert sent_to("server 1", lost) == sent_to("watches 1", lost) == [ForgetClient(1)]

    late = asked("link 1", lost.values[0], ServiceAction.ARRIVE_LATE)
    assert late.values[0].stray == ()
    assert sent_to("server 1", late) == [ServeRequest(session_of(1), SET, None)]


def test_a_connection_of_the_same_session_drops_what_may_still_arrive() -> None:
    lost = ClientConnection(ConnectionState.DOWN, session_of(1), stray=(SET,))

    assert asked("link 1", lost, ResumeSession(2, 5)).values == (
        ClientConnection(ConnectionState.UP, session_of(1), 2),
    )


def test_a_closed_connection_is_noticed_after_all_that_was_sent_before() -> None:
    cut = asked("link 1", link(up=(SET,), down=(CHANGED,)), CloseConnection(1, session_of(1))).values[0]
    assert (cut.up, cut.down) == ((), (CHANGED, ConnectionClosed()))

    told = asked("link 1", cut, DeliverMessage())
    assert sent_to("library 1", told) == [Delivery(CHANGED)]
    noticed = asked("link 1", told.values[0], DeliverMessage())
    assert sent_to("library 1", noticed) == [ConnectionLoss()]


def test_another_servers_end_of_a_session_leaves_the_connection_alone() -> None:
    assert asked("link 1", UP, CloseConnection(2, session_of(1))) == Outcome((UP,))
    assert asked("link 1", UP, CloseConnection(1, session_of(1, 2))) == Outcome((UP,))


def test_who_closes_its_session_is_gone_when_it_is_answered_or_cut_off() -> None:
    closing = asked("link 1", UP, SendRequest(CloseSession())).values[0]
    assert asked("link 1", closing, ServiceAction.DISCONNECT).values[0].state is ConnectionState.GONE

    answered = link(closing=True, down=(Reply(CloseSession(), Code.OK, None, 1),))
    assert answered.cut
    assert asked("link 1", answered, DeliverMessage()).values == (ClientConnection(ConnectionState.GONE, 0),)


def test_who_crashes_leaves_a_session_until_it_lapses() -> None:
    died = asked("link 1", link(up=(SET,)), ServiceAction.CRASH)
    assert died.values == (ClientConnection(ConnectionState.GONE, session_of(1), stray=(SET,)),)
    assert sent_to("library 1", died) == [ClientCrash()]

    assert asked("link 1", died.values[0], ServiceAction.EXPIRE).values == (ClientConnection(ConnectionState.GONE, 0),)


def test_who_hears_that_its_session_is_over_may_open_the_next() -> None:
    over = asked("link 1", ClientConnection(ConnectionState.DOWN, session_of(1)), RefuseSession())

    assert over.values == (ClientConnection(ConnectionState.OVER, session_of(1)),)
    assert sent_to("library 1", over) == [SessionExpiry()]


def test_without_a_library_the_link_tells_the_client_itself() -> None:
    outcome = asked("link 1", ClientConnection(ConnectionState.DOWN, session_of(1)), ResumeSession(1, 3), AT_ONCE)

    assert sent_to("client 1", outcome) == [ConnectionStart(True, session_of(1), 3)]


# Setups.


def test_a_session_names_its_client() -> None:
    assert [client_of(session_of(client, number)) for client in (1, 3) for number in (1, 2)] == [1, 1, 3, 3]


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"clients": 2, "at": (1,)}, {"servers": 2, "at": (3,)}])
def test_a_setup_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="server"):
        ServiceSetup(**wrong)


def test_there_is_a_column_for_what_matters_and_for_nothing_else() -> None:
    def names(setup: ServiceSetup) -> set[str]:
        return {column.name for column in service(setup).columns}

    assert names(ServiceSetup()) == {"leader", "watches 1", "link 1", "faults"}
    assert names(LAGGING) - names(ServiceSetup(clients=2, servers=2)) == {
        "server 1", "server 2", "library 1", "library 2"
    }  # fmt: skip


def test_faults_without_a_budget_have_no_rules() -> None:
    def rules(**fields: Any) -> int:
        return len(service(ServiceSetup(clients=2, **fields)).rules)

    assert rules() < rules(budgets=FaultBudgets(1, 0, 0)) < rules(budgets=FaultBudgets(1, 1, 1), clocks=Clocks.PAUSED)
