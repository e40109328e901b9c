"""A place in a queue, request by request: the official recipe, and the effect of each lost answer."""

import pytest

from spec.recipes import queue
from spec.recipes.events import (
    Connected,
    Expired,
    Failed,
    First,
    Follows,
    Holds,
    HoldsNoMore,
    Join,
    Leave,
    Unanswered,
    Waits,
    Withdrawn,
)
from spec.recipes.member import MemberPhase, QueueMember, QueueRules
from spec.recipes.recipes import fair_rules, latch_rules, lock_rules
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.replies import Code
from spec.tree.requests import Create2, CreateMode, Delete, Exists, GetChildren, GetData, Sync
from tests.support.recipes import Told

MINE, FIRST, BETWEEN = "/r/_c_a-lock-0000000007", "/r/_c_x-lock-0000000003", "/r/_c_y-lock-0000000005"
CREATE = Create2("/r/_c_a-lock-", b"", OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL)
LOOK = GetChildren("/r", False)


def names(*paths: str) -> tuple[str, ...]:
    return tuple(path.removeprefix("/r/") for path in paths)


def client(rules: QueueRules | None = None) -> Told[QueueMember]:
    return Told(queue.step, rules or lock_rules("/r"), QueueMember())


def joined(rules: QueueRules | None = None) -> Told[QueueMember]:
    one = client(rules)
    one.hear(Join("a"))
    return one


def created(rules: QueueRules | None = None, path: str = MINE) -> Told[QueueMember]:
    one = joined(rules)
    one.created(path, 70)
    return one


def waiting() -> Told[QueueMember]:
    one = created()
    one.children(*names(MINE, FIRST, BETWEEN))
    one.data()
    return one


def holding() -> Told[QueueMember]:
    one = created()
    one.children(*names(MINE))
    return one


def looking() -> Told[QueueMember]:
    """The connection was lost before the answer to the creation, and the server has caught up."""
    one = joined()
    one.cut_off()
    one.back()
    one.done()
    return one


def test_who_wants_to_hold_creates_a_znode_with_its_id() -> None:
    assert client().hear(Join("a")) == CREATE


def test_the_first_in_the_queue_holds_with_the_czxid_of_its_znode_as_token() -> None:
    one = joined()
    assert one.created(MINE, 70) == LOOK
    assert one.children(*names(MINE, "/r/_c_z-lock-0000000009")) is None
    assert one.facts == (Holds(MINE, 70),)


def test_the_others_watch_the_znode_just_below_their_own() -> None:
    one = created()
    assert one.children(*names(FIRST, MINE, BETWEEN)) == GetData(BETWEEN, True)
    assert one.data() is None
    assert one.facts == (Waits(BETWEEN),)


def test_order_is_by_number_whatever_stands_before_it() -> None:
    one = created()
    low_name_high_number = "_c_0-lock-0000000008"
    assert one.children(*names(MINE), low_name_high_number, "not-numbered") is None
    assert one.state.holds


def test_a_predecessor_that_is_gone_is_followed_by_another_look() -> None:
    one = waiting()
    assert one.deleted(BETWEEN) == LOOK
    assert one.children(*names(FIRST, MINE)) == GetData(FIRST, True)


def test_a_predecessor_that_went_before_the_watch_was_set_too() -> None:
    one = created()
    one.children(*names(BETWEEN, MINE))
    assert one.done(Code.NO_NODE) == LOOK


def test_a_notice_that_overtakes_its_own_answer_is_not_lost() -> None:
    one = created()
    one.children(*names(BETWEEN, MINE))
    assert one.deleted(BETWEEN) == GetData(BETWEEN, True)
    assert one.data() == LOOK


def test_a_watch_of_another_time_is_none_of_its_business() -> None:
    one = waiting()
    assert one.deleted(FIRST) is None
    assert one.state.phase is MemberPhase.WAITING


def test_a_znode_that_an_operator_deleted_is_created_anew() -> None:
    one = waiting()
    one.deleted(BETWEEN)
    assert one.children(*names(FIRST)) == CREATE


def test_a_release_believes_first_and_deletes_then() -> None:
    one = holding()
    assert one.hear(Leave()) == Delete(MINE, -1)
    assert one.facts == (HoldsNoMore("released"),)
    assert one.done() is None
    assert one.facts == (Withdrawn(),)


def test_giving_up_while_waiting_deletes_the_znode() -> None:
    assert waiting().hear(Leave()) == Delete(MINE, -1)


def test_giving_up_while_the_znode_is_created_deletes_it_when_it_is_there() -> None:
    one = joined()
    assert one.hear(Leave()) == CREATE
    assert one.created(MINE, 70) == Delete(MINE, -1)


# -- connections


def test_a_creation_whose_answer_was_lost_is_looked_for_once_the_server_has_caught_up() -> None:
    one = joined()
    one.cut_off()
    assert one.back() == Sync("/r")
    assert one.done() == LOOK
    assert one.children(*names(FIRST, MINE)) == Exists(MINE, False)
    assert one.found(70) == LOOK
    assert (one.state.path, one.state.token) == (MINE, 70)


def test_a_creation_that_never_arrived_is_asked_for_again_under_the_same_id() -> None:
    one = looking()
    assert one.children(*names(FIRST)) == CREATE


def test_a_search_that_is_cut_off_begins_anew() -> None:
    one = looking()
    one.cut_off()
    assert one.back() == Sync("/r")


def test_who_gave_up_meanwhile_looks_too_and_deletes_what_it_finds() -> None:
    one = joined()
    one.cut_off()
    one.hear(Leave())
    one.back()
    one.done()
    assert one.children(*names(MINE)) == Delete(MINE, -1)


def test_whoever_holds_does_not_while_it_is_disconnected() -> None:
    one = holding()
    one.cut_off()
    assert one.facts == (HoldsNoMore("suspended"),)
    assert one.back() == LOOK
    one.children(*names(MINE))
    assert one.facts == (Holds(MINE, 70),)


def test_a_lock_whose_znode_was_deleted_is_not_taken_again_unasked() -> None:
    """`InterProcessMutex` does not acquire again: the caller does."""
    one = holding()
    one.cut_off()
    one.back()
    assert one.children(*names(FIRST)) is None
    assert Withdrawn() in one.facts


def test_a_latch_gives_up_what_it_had_and_queues_anew() -> None:
    one = created(latch_rules("/r"), "/r/_c_a-latch-0000000007")
    one.children("_c_a-latch-0000000007")
    one.cut_off()
    assert one.back("b") == Delete("/r/_c_a-latch-0000000007", -1)
    again = one.done()
    assert isinstance(again, Create2)
    assert again.path == "/r/_c_b-latch-"


def test_whoever_waits_looks_again_after_a_reconnection() -> None:
    one = waiting()
    one.cut_off()
    assert one.back() == LOOK


def test_a_deletion_whose_answer_was_lost_is_asked_for_again() -> None:
    one = holding()
    one.hear(Leave())
    one.cut_off()
    assert one.back() == Delete(MINE, -1)
    assert one.done(Code.NO_NODE) is None
    assert one.facts == (Withdrawn(),)


def test_the_news_that_no_answer_will_come_may_be_late() -> None:
    one = joined()
    one.hear(Connected(True, "b"))
    assert one.hear(Unanswered()) == Sync("/r")


# -- sessions


def test_a_lock_that_was_lost_is_not_taken_again_by_itself() -> None:
    one = holding()
    one.hear(Expired())
    assert one.facts == (HoldsNoMore("expired"), Withdrawn())
    assert one.hear(Connected(False, "b")) is None


def test_also_if_it_was_in_doubt_before() -> None:
    one = holding()
    one.cut_off()
    one.back()
    one.cut_off()
    assert one.expired_and_back() is None
    assert not one.state.wanted


def test_whoever_waited_queues_anew_with_its_new_session() -> None:
    one = waiting()
    one.cut_off()
    again = one.expired_and_back("b")
    assert isinstance(again, Create2)
    assert again.path == "/r/_c_b-lock-"


def test_whoever_wants_it_again_after_a_release_is_not_out_when_the_session_expires() -> None:
    one = holding()
    one.cut_off()
    one.hear(Leave(), Join("b"))
    again = one.expired_and_back("c")
    assert isinstance(again, Create2)


def test_what_was_given_up_while_cut_off_is_deleted_though_it_is_wanted_again() -> None:
    one = holding()
    one.cut_off()
    one.hear(Leave())
    one.hear(Join("c"))
    assert one.back() == Delete(MINE, -1)
    assert isinstance(one.done(), Create2)


def test_what_was_given_up_while_it_looks_is_deleted_though_it_is_wanted_again() -> None:
    one = holding()
    one.cut_off()
    assert one.back() == LOOK
    one.hear(Leave())
    one.hear(Join("c"))
    assert one.children(*names(MINE)) == Delete(MINE, -1)
    assert isinstance(one.done(), Create2)


# -- announcements

ANNOUNCED, PLACE = "/r-leader", "/r/_c_a-n_0000000007"
ANNOUNCE = Create2(ANNOUNCED, PLACE.encode(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)


def first_in_line() -> Told[QueueMember]:
    one = created(fair_rules("/r"), PLACE)
    one.children(*names(PLACE))
    return one


def test_who_is_first_announces_itself_before_it_leads() -> None:
    one = first_in_line()
    assert (one.asked, one.facts) == (ANNOUNCE, (First(PLACE),))
    one.created(ANNOUNCED, 71)
    assert one.facts == (Holds(PLACE, 70),)


def test_an_announcement_of_its_own_whose_answer_was_lost_is_recognised() -> None:
    one = first_in_line()
    one.done(Code.NODE_EXISTS)
    assert one.asked == GetData(ANNOUNCED, True)
    one.data(PLACE.encode())
    assert one.state.holds


def test_an_announcement_of_another_is_waited_for_to_go() -> None:
    one = first_in_line()
    one.done(Code.NODE_EXISTS)
    one.data(b"/r/_c_x-n_0000000003")
    assert one.facts == (Waits(ANNOUNCED),)
    assert one.deleted(ANNOUNCED) == LOOK


def test_the_others_ask_the_announcement_who_leads() -> None:
    one = created(fair_rules("/r"), PLACE)
    one.children("_c_x-n_0000000003", *names(PLACE))
    assert one.data() == GetData(ANNOUNCED, False)
    one.data(b"/r/_c_x-n_0000000003")
    assert one.facts == (Follows("/r/_c_x-n_0000000003"), Waits("/r/_c_x-n_0000000003"))


def test_the_announcement_is_taken_back_before_the_place_is() -> None:
    one = first_in_line()
    one.created(ANNOUNCED, 71)
    assert one.hear(Leave()) == Delete(ANNOUNCED, -1)
    assert one.done() == Delete(PLACE, -1)


def test_an_announcement_whose_answer_was_lost_is_taken_back_too() -> None:
    one = first_in_line()
    one.cut_off()
    one.hear(Leave())
    one.back()
    assert one.children(*names(PLACE)) == Delete(ANNOUNCED, -1)


def test_the_announcement_of_a_place_that_was_deleted_is_taken_back_first() -> None:
    one = first_in_line()
    one.created(ANNOUNCED, 71)
    one.cut_off()
    one.back()
    assert one.children() == Delete(ANNOUNCED, -1)
    assert one.done() == Delete(PLACE, -1)
    assert isinstance(one.done(Code.NO_NODE), Create2)


# -- refusals


@pytest.mark.parametrize("code", [Code.NO_AUTH, Code.NO_NODE, Code.INVALID_ACL])
def test_what_the_servers_refuse_is_told_and_ends_it(code: Code) -> None:
    one = joined()
    assert one.done(code) is None
    assert one.facts == (Failed(code), Withdrawn())
    assert one.state == QueueMember()
