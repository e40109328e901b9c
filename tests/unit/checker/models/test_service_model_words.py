"""Scripts in words, errors in them, and the readable form of requests and answers."""

from typing import Any

import pytest

from checker.models.service import ConnectionClosed, Reply, WatchNotification
from checker.models.service.scripts import Script, step_of_tag, tag
from checker.present import wording
from checker.properties.registry import UnknownPropertyError
from checker.scenario.request_parser import RequestError, request_of, script_of
from checker.scenario.service import applicable, service_job, why_no_effect
from spec.tree.apply import EventType
from spec.tree.data import new_znode, stat_of
from spec.tree.replies import Code, DataReply, ErrorReply, MultiReply, OperationResult
from spec.tree.requests import Create2, GetData, Multi, SetData
from spec.variants import Variant
from tests.support.services import service_setup

EMPTY = stat_of(new_znode(b"", (), 1, 0, 0), 0)


@pytest.mark.parametrize(
    "words",
    [
        "create /a", "create -e /a", "create -s /q/n_", "create -e -s /q/n_", "get /a", "get -w /a", "stat -w /a",
        "ls -w /q", "sync /a", "set /a", "set -v 0 /a", "delete /a", "delete -v 2 /a", "close",
    ],
)  # fmt: skip
def test_a_request_in_words_reads_back_as_the_same_words(words: str) -> None:
    assert wording.request(request_of(words)) == words


def test_a_list_is_a_multi_and_a_choice_is_a_step_with_several_requests() -> None:
    script = script_of([["set /x", "check -v 0 /y"], {"one of": ["get /x", "close"]}])

    assert wording.request(script.steps[0][0]) == "multi [set /x, check -v 0 /y]"
    assert [wording.request(record) for record in script.steps[1]] == ["get /x", "close"]


def test_a_client_that_waits_for_no_answer_at_all_asks_nothing() -> None:
    with pytest.raises(RequestError, match="at least 1"):
        script_of(["get /a"], pipeline=0)


def test_every_update_writes_data_of_its_own() -> None:
    tagged = Script.of(request_of("set /x"), [request_of("create /a"), request_of(["set /x", "set /y"])]).with_tags(2)

    assert tagged.steps[0] == (SetData("/x", b"2.1", -1),)
    create, multi = tagged.steps[1]
    assert isinstance(create, Create2)
    assert isinstance(multi, Multi)
    assert (create.data, {operation.data for operation in multi.operations}) == (b"2.2a", {b"2.2b"})  # type: ignore[attr-defined]


@pytest.mark.parametrize("choice", [None, 0, 25])
def test_data_says_whose_it_is(choice: int | None) -> None:
    assert step_of_tag(tag(3, 12, choice)) == (3, 12)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (WatchNotification(EventType.NODE_DELETED, "/a"), "/a was deleted"),
        (ConnectionClosed(), "connection closed"),
        (Reply(GetData("/a", True), Code.OK, DataReply(b"1.1", EMPTY), 1), "/a = 1.1"),
        (Reply(GetData("/a", True), Code.NO_NODE, None, 1), "get /a: NO_NODE"),
        (
            Reply(
                Multi((SetData("/a", b"", 7),)),
                Code.OK,
                MultiReply((OperationResult(-1, ErrorReply(Code.BAD_VERSION)),)),
                1,
            ),
            "multi: BAD_VERSION",
        ),
    ],
)
def test_what_a_server_says_is_told_in_a_few_words(said: Any, words: str) -> None:
    assert wording.message(said) == words


def test_invariants_that_would_be_vacuous_are_left_out() -> None:
    assert "AllOrNothing" not in applicable([script_of(["set /x"])])
    assert "AllOrNothing" in applicable([script_of([["set /x", "set /y"]])])


def test_a_property_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(UnknownPropertyError, match="'NoLoss'"):
        scripts = [script_of(["get /a"])]
        service_job("run", service_setup(scripts), scripts, ["NoLoss"])


def test_a_variant_that_would_change_nothing_says_why() -> None:
    scripts = [script_of(["get -w /a", "set /a"])]
    setup = service_setup(scripts, paths=["/a"])

    assert why_no_effect(Variant.WATCH_FIRES_TWICE, setup, scripts) is None
    assert why_no_effect(Variant.STALE_AFTER_MOVING, setup, scripts) == (
        "it changes nothing where no connection is lost",
        "write faults: {disconnects: 1}",
    )
    assert why_no_effect(Variant.TORN_RECORD, setup, scripts) is not None
