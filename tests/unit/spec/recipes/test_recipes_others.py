"""The unfair election, the re-entrant lock and the selector, request by request."""

from spec.recipes import lock, selector, unfair
from spec.recipes.events import (
    Expired,
    Failed,
    Follows,
    Holds,
    HoldsNoMore,
    Interrupt,
    Interrupted,
    Join,
    Leave,
    Returned,
    TakeLeadership,
    Withdrawn,
)
from spec.recipes.member import Member
from spec.recipes.names import in_order, number, of_id, protected
from spec.recipes.recipes import lock_rules, selector_rules, unfair_rules
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.replies import Code
from spec.tree.requests import Create2, CreateMode, Delete, GetChildren, GetData, Sync
from tests.support.recipes import Told

LEADER = "/r/leader"
CREATE = Create2(LEADER, b"a", OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)
MINE = "/r/_c_a-lock-0000000007"


def candidate() -> Told[Member]:
    return Told(unfair.step, unfair_rules("/r"), Member())


def leading() -> Told[Member]:
    one = candidate()
    one.hear(Join("a"))
    one.created(LEADER, 5)
    return one


def test_whoever_creates_the_znode_leads() -> None:
    one = candidate()
    assert one.hear(Join("a")) == CREATE
    one.created(LEADER, 5)
    assert one.facts == (Holds(LEADER, 5),)


def test_whoever_comes_too_late_watches_the_znode_and_knows_who_leads() -> None:
    one = candidate()
    one.hear(Join("a"))
    assert one.done(Code.NODE_EXISTS) == GetData(LEADER, True)
    one.data(b"x")
    assert one.facts == (Follows("x"),)
    assert one.deleted(LEADER) == CREATE


def test_a_znode_with_its_own_id_is_its_own() -> None:
    one = candidate()
    one.hear(Join("a"))
    one.cut_off()
    assert one.back() == CREATE
    one.done(Code.NODE_EXISTS)
    one.data(b"a")
    assert one.state.holds


def test_a_deletion_whose_answer_was_lost_is_not_repeated_on_anothers_znode() -> None:
    one = leading()
    one.hear(Leave())
    one.cut_off()
    assert one.back() == Sync(LEADER)
    assert one.done() == GetData(LEADER, False)
    assert one.data(b"x") is None
    assert one.facts == (Withdrawn(),)


def test_a_deletion_that_never_arrived_is_repeated() -> None:
    one = leading()
    one.hear(Leave())
    one.cut_off()
    one.back()
    one.done()
    assert one.data(b"a") == Delete(LEADER, -1)


def test_a_leader_that_was_disconnected_looks_whether_it_still_leads() -> None:
    one = leading()
    one.cut_off()
    assert one.facts == (HoldsNoMore("suspended"),)
    assert one.back() == GetData(LEADER, True)
    one.data(b"a")
    assert one.state.holds


def test_a_candidate_that_never_stood_is_gone_when_it_is_unwanted() -> None:
    one = candidate()
    assert one.hear(Leave()) is None
    assert one.facts == (Withdrawn(),)


def test_a_leader_stops_once_where_its_session_expires_after_a_disconnection() -> None:
    """A client gives up leadership when it is disconnected, so it has no leadership left when the session expires."""
    one = leading()
    one.cut_off()
    assert (one.facts, one.state.holds) == ((HoldsNoMore("suspended"),), False)
    one.hear(Expired())
    assert HoldsNoMore("expired") not in one.facts


def test_what_was_given_up_is_deleted_though_it_be_wanted_again_before() -> None:
    one = leading()
    one.cut_off()
    one.hear(Leave(), Join("b"))
    one.back()
    assert one.data(b"a") == Delete(LEADER, -1)
    again = one.done()
    assert isinstance(again, Create2)


# -- the lock


def held() -> Told[lock.Lock]:
    one: Told[lock.Lock] = Told(lock.step, lock_rules("/r"), lock.Lock())
    one.hear(Join("a"))
    one.created(MINE, 7)
    one.children("_c_a-lock-0000000007")
    return one


def test_whoever_holds_a_lock_takes_it_again_at_once() -> None:
    one = held()
    assert one.hear(Join("b")) is None
    assert (one.state.taken, one.facts) == (2, (Holds(MINE, 7),))


def test_as_many_releases_give_it_up() -> None:
    one = held()
    one.hear(Join("b"))
    assert one.hear(Leave()) is None
    assert one.hear(Leave()) == Delete(MINE, -1)


def test_a_lost_lock_is_taken_by_nobody() -> None:
    one = held()
    one.hear(Join("b"))
    one.cut_off()
    one.expired_and_back()
    assert one.state.taken == 0


# -- the selector


def called(*, requeues: bool = False) -> Told[selector.Selector]:
    one: Told[selector.Selector] = Told(selector.step, selector_rules("/r"), selector.Selector(requeues=requeues))
    one.hear(Join("a"))
    one.created(MINE, 7)
    one.children("_c_a-lock-0000000007")
    return one


def test_leadership_is_a_call_with_the_token() -> None:
    one = called()
    assert one.facts == (Holds(MINE, 7), TakeLeadership(7))


def test_leadership_is_given_up_on_return() -> None:
    one = called()
    assert one.hear(Returned()) == Delete(MINE, -1)
    one.done()
    assert one.asked is None


def test_with_requeue_the_client_stands_again() -> None:
    one = called(requeues=True)
    one.hear(Returned())
    assert isinstance(one.done(), Create2)


def test_a_lost_connection_interrupts() -> None:
    one = called()
    one.cut_off()
    assert one.facts == (HoldsNoMore("suspended"), Interrupt())


def test_the_place_is_kept_until_the_procedure_has_returned() -> None:
    one = called(requeues=True)
    one.cut_off()
    assert one.back() == GetChildren("/r", False)
    one.children("_c_a-lock-0000000007")
    assert one.facts == (Holds(MINE, 7),), "it holds again, and the procedure is not called a second time"
    assert one.hear(Returned()) == Delete(MINE, -1)
    assert isinstance(one.done(), Create2)


def test_the_procedure_is_not_called_while_an_earlier_call_runs() -> None:
    one = called(requeues=True)
    one.cut_off()
    assert one.expired_and_back() is None, "it stands again only when the procedure has returned"
    assert isinstance(one.hear(Returned()), Create2)


def test_an_interruption_ends_the_call_and_nothing_else() -> None:
    one = called()
    assert one.hear(Interrupted()) is None
    assert one.facts == (Interrupt(),)


def test_closing_interrupts_and_gives_up_when_the_procedure_has_returned() -> None:
    one = called(requeues=True)
    assert one.hear(Leave()) is None
    assert one.facts == (Interrupt(),)
    assert one.hear(Returned()) == Delete(MINE, -1)
    assert one.done() is None, "and does not queue again"


def test_what_the_servers_refuse_is_not_asked_for_again_and_again() -> None:
    one: Told[selector.Selector] = Told(selector.step, selector_rules("/r"), selector.Selector(requeues=True))
    one.hear(Join("a"))
    assert one.done(Code.NO_AUTH) is None
    assert one.facts == (Failed(Code.NO_AUTH), Withdrawn())


# -- names


def test_names_carry_the_id_the_word_and_the_number() -> None:
    assert protected("a", "lock-") == "_c_a-lock-"
    assert number("_c_a-lock-0000000007", "lock-") == 7
    assert of_id(["_c_b-lock-0000000001", "_c_a-lock-0000000002"], "a") == "_c_a-lock-0000000002"


def test_an_id_that_another_begins_with_is_another() -> None:
    assert of_id(["_c_ab-lock-0000000001"], "a") is None


def test_a_name_of_another_word_is_no_place_in_the_queue() -> None:
    assert in_order(["n_0000000002", "x_0000000001", "n_1", "n_"], "n_") == ("n_0000000002",)


def test_numbers_go_on_below_zero_when_they_overflow() -> None:
    assert number("lock-2147483647", "lock-") == 2147483647
    assert number("lock--2147483648", "lock-") == -2147483648
    assert number("lock--000000005", "lock-") == -5
