"""The presentation of clients with a recipe: lanes, captions, notes of belief, and the packets between them."""

from typing import Any

import pytest

from checker.engine.semantics import successors
from checker.job import DiagramEvent, Job
from checker.models.service import ConnectionClosed, Reply, WatchNotification
from checker.present.wording import api_message, api_request, short_path
from checker.scenario import from_text
from spec.tree.apply import EventType
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.replies import ChildrenReply, Code
from spec.tree.requests import Create2, CreateMode, GetChildren, GetData

ALONE = "recipe: lock\nclients: 1\n"
LOST = ALONE + "faults: {disconnects: 1}\n"
TWO = "recipe: unfair-election\nclients: 2\n"
PAUSED = TWO + "clocks: paused\nwrites: 1\nfaults: {expiries: 1}\n"
LAGGING = ALONE + "servers: 2\nlag: true\nfaults: {crashes: 1}\n"
CREATES = ("client 1 wants to hold", "create c1-lock- of client 1 arrives")
LEADS = ("client 1 wants to lead", "create leader of client 1 arrives", "client 1 hears create: leader")
HOLDS = (
    *CREATES,
    "client 1 hears create: c1-lock-0",
    "getChildren /r of client 1 arrives",
    "client 1 hears getChildren: c1-lock-0",
)


def shown(text: str, *captions: str) -> tuple[Any, tuple[DiagramEvent, ...]]:
    """Return the lanes after the steps with these captions, and the elements that the last of them draws."""
    made: Job = from_text(text, lambda _: None)
    drawn: tuple[DiagramEvent, ...] = ()
    row = made.model.initial()
    for each in captions:
        steps = {made.presenter.caption(move): (move, after) for move, after in successors(made.model, row)}
        assert each in steps, f"{each!r} is none of {sorted(steps)}"
        move, after = steps[each]
        row, drawn = after, made.presenter.diagram(row, move, after)
    return made.presenter.lanes(row), drawn


# -- words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/r", "/r"),
        ("/r-leader", "/r-leader"),
        ("/r/leader", "leader"),
        ("/r/_c_c1-lock-0000000000", "c1-lock-0"),
        ("/r/lock-0000000120", "lock-120"),
    ],
)
def test_a_path_is_told_by_its_last_name(path: str, told: str) -> None:
    assert short_path(path) == told


def test_a_request_is_told_with_its_watch() -> None:
    assert api_request(GetData("/r/leader", True)) == "getData leader and watch"
    assert api_request(Create2("/r/x", b"", OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)) == "create x"


def test_an_answer_is_told_in_full_and_shortly() -> None:
    reply = Reply(GetChildren("/r", False), Code.OK, ChildrenReply(("_c_c1-lock-0000000000", "x")), 1)
    assert api_message(reply) == "getChildren /r: c1-lock-0, x"
    assert api_message(reply, brief=True) == "getChildren: c1-lock-0, x"
    assert api_message(Reply(GetData("/r/x", True), Code.NO_NODE, None, 1), brief=True) == "getData: NO_NODE"


def test_a_notice_and_a_closed_connection_are_told_alike_everywhere() -> None:
    notice = WatchNotification(EventType.NODE_DELETED, "/r/leader")
    assert api_message(notice) == api_message(notice, brief=True) == "leader deleted"
    assert api_message(ConnectionClosed()) == api_message(ConnectionClosed(), brief=True) == "the connection is closed"


# -- lanes ---------------------------------------------------------------------------------------------------


def test_a_client_shows_what_it_knows_and_the_service_what_is_true() -> None:
    lanes, _ = shown(LOST, *CREATES)
    assert lanes["client 1"] == {"state": "entering", "connection": "up"}
    assert lanes["service"] == {"c1-lock-0": "client 1"}


def test_who_may_or_may_not_hold_any_more_is_in_doubt() -> None:
    lanes, drawn = shown(LOST, *HOLDS, "client 1 loses its connection")
    assert lanes["client 1"]["state"] == "in doubt"
    assert lanes["client 1"]["connection"] == "suspended"
    assert DiagramEvent("note", "client 1", "*holds no more*") in drawn


def test_watches_are_shown_where_they_are() -> None:
    captions = ("client 2 wants to lead", "create leader of client 2 arrives", "client 2 hears create: NODE_EXISTS")
    lanes, _ = shown(TWO, *LEADS, *captions, "getData leader and watch of client 2 arrives")
    assert lanes["service"] == {"leader": "client 1", "watch leader": "client 2"}


def test_what_a_server_has_not_applied_is_told() -> None:
    applied = "server 2 applies create c1-lock-0"
    lanes, _ = shown(LAGGING, CREATES[0], f"{CREATES[1]} at server 1", applied)
    assert lanes["service"]["server 1"] == "lacks c1-lock-0"
    assert lanes["service"]["server 2"] == "up to date"


# -- pictures ------------------------------------------------------------------------------------------------


def test_a_note_says_when_a_client_comes_to_hold() -> None:
    _, drawn = shown(ALONE, *HOLDS)
    assert [(each.kind, each.text) for each in drawn] == [("deliver", "getChildren /r: c1-lock-0"), ("note", "*holds*")]


def test_an_answer_on_its_way_is_lost_with_the_connection() -> None:
    _, drawn = shown(LOST, *CREATES, "client 1 loses its connection")
    assert DiagramEvent("lost", "service", "create c1-lock-: c1-lock-0", peer="client 1") in drawn


def test_a_request_is_lost_when_its_client_is_connected_again_and_not_before() -> None:
    captions = (CREATES[0], "client 1 loses its connection")
    lost = DiagramEvent("lost", "client 1", "create c1-lock-", peer="service")
    assert lost not in shown(LOST, *captions)[1]
    assert lost in shown(LOST, *captions, "client 1 reconnects")[1]
    lanes, drawn = shown(LOST, *captions, "create c1-lock- of client 1 arrives late", "client 1 reconnects")
    assert lost not in drawn
    assert lanes["service"] == {"c1-lock-0": "client 1"}


def test_a_read_is_lost_with_its_client() -> None:
    _, drawn = shown(ALONE + "faults: {crashes: 1}\n", *HOLDS[:3], "client 1 crashes")
    assert DiagramEvent("crash", "client 1", "crash") in drawn
    assert DiagramEvent("lost", "client 1", "getChildren /r", peer="service") in drawn


def test_what_is_no_message_is_drawn_with_its_caption() -> None:
    _, drawn = shown(LOST, *HOLDS, "client 1 releases")
    assert DiagramEvent("note", "client 1", "client 1 releases") in drawn


LATE = (
    *LEADS,
    "client 1 writes",
    "client 2 wants to lead",
    "the session of client 1 expires",
    "create leader of client 2 arrives",
    "client 2 hears create: leader",
    "client 2 writes",
    "a write of client 2 arrives, token 3",
    "a write of client 1 arrives, token 1",
)


def test_the_resource_says_what_it_refuses() -> None:
    lanes, drawn = shown(PAUSED, *LATE)
    assert drawn[-2:] == (
        DiagramEvent("deliver", "resource", "write, token 1", peer="client 1"),
        DiagramEvent("note", "resource", "*refuses it*"),
    )
    assert lanes["resource"] == {"greatest token": 3}


def test_a_resource_without_a_fence_accepts_out_of_order() -> None:
    lanes, drawn = shown(PAUSED + "variants: [no-fencing]\n", *LATE)
    assert drawn[-1] == DiagramEvent("note", "resource", "accepts it")
    assert lanes["resource"]["accepted out of order"] == 1
