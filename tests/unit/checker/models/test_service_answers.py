"""Expected answers: their notation, and the answers that differ from them."""

from typing import Any

import pytest

from checker.engine import plain, search
from checker.models.service.messages import Reply
from checker.models.service.observations import Expected, difference
from checker.scenario.request_parser import RequestError, expected_of, script_of
from checker.scenario.service import service_job
from spec.tree.data import Stat
from spec.tree.replies import Code, DataReply
from spec.tree.requests import CloseSession, GetData
from tests.support.services import service_setup

GET = (GetData("/a", watch=False),)
FOUND = Reply(GET[0], Code.OK, DataReply(b"x", Stat(5, 6, 0, 0, 1, 0, 0, 0, 1, 0, 5)), 7)


@pytest.mark.parametrize("text", ["NoNode", "nonode", "NONODE"])
def test_a_code_is_written_as_zookeeper_writes_it_in_any_case(text: str) -> None:
    assert expected_of(GET, text) == Expected((Code.NO_NODE,))


def test_several_codes_and_fields_are_allowed() -> None:
    assert expected_of(GET, "NoNode | ok version=1 data=x") == Expected(
        (Code.NO_NODE, Code.OK), (("version", "1"), ("data", "x"))
    )


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        ("NoNod", "unknown error code 'NoNod'", "did you mean NoNode?"),
        ("NoNode version=1", "NoNode version=1", "only ok"),
        ("ok versoin=1", "no field 'versoin'", "did you mean version?"),
        ("ok version", "the value is missing", "version=0"),
        ("ok results=OK", "no field 'results'", "write one of"),
    ],
)
def test_a_mistake_in_an_expected_answer_is_named(text: str, wrong: str, right: str) -> None:
    with pytest.raises(RequestError) as raised:
        expected_of(GET, text)
    assert wrong in raised.value.wrong and right in raised.value.right


@pytest.mark.parametrize(
    "steps", [["close => ok data=x"], [{"one of": ["get /a", "get /b"]}, "get /a =>"], ["get /a => "]]
)
def test_an_answer_without_a_meaning_is_refused(steps: list[Any]) -> None:
    with pytest.raises(RequestError):
        script_of(steps)


def test_expected_answers_need_a_client_that_waits_for_each() -> None:
    with pytest.raises(RequestError, match="pipeline"):
        script_of(["get /a => ok"], 2)


@pytest.mark.parametrize(
    ("text", "differs"),
    [
        ("ok", None),
        ("ok version=1 data=x length=1 created=5 modified=6 children-modified=5 owner=0x0", None),
        ("NoNode", "OK"),
        ("NoNode | ok", None),
        ("ok version=2", "version=1"),
        ("ok data=y", "data=x"),
    ],
)
def test_the_first_part_that_differs_is_named(text: str, differs: str | None) -> None:
    assert difference(expected_of(GET, text), FOUND) == differs


def test_the_fields_of_a_failure_are_not_compared() -> None:
    refused = Reply(GET[0], Code.NO_NODE, None, 7)
    assert difference(expected_of(GET, "NoNode | ok version=3"), refused) is None


def test_a_request_without_a_reply_may_be_expected_to_succeed() -> None:
    assert expected_of((CloseSession(),), "ok") == Expected((Code.OK,))


@pytest.mark.parametrize("explore", [search.explore, plain.explore], ids=["tables", "plain"])
@pytest.mark.parametrize(("answer", "violated"), [("NodeExists", True), ("ok | NodeExists", False), ("ok", True)])
def test_every_order_of_two_clients_is_compared(explore: Any, answer: str, violated: bool) -> None:
    """Two clients create one znode: each of them is the first one in some order."""
    scripts = [script_of([f"create /a => {answer}"]), script_of(["create /a"])]
    job = service_job("two creators", service_setup(scripts), scripts, ("ExpectedAnswers",))
    assert bool(explore(job.model).violations) is violated
