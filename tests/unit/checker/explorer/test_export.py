"""Exported spaces and stories: a space is compared with an exploration by the checker, a story with its scenario."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest

from checker.engine import search
from checker.engine.result import Limits
from checker.explorer import Handlers
from checker.explorer.export.space import MOST, TooManyStatesError, space_of
from checker.explorer.stories import Story, StoryError, load_any, read_story, story_view
from checker.job import Json
from tests.support.command_line import cli
from tests.support.explorer import job

STORIES = sorted((Path(__file__).parents[4] / "docs" / "stories").glob("*.story.yaml"))
WORDS_A_MINUTE, CHARACTERS_A_MINUTE = 200, 350  # of a reader


def depths(space: Json) -> list[int]:
    """The number of moves to each state of a space, by its own lists of moves."""
    found, level = {0: 0}, [0]
    while level:
        targets = [target for state in level for target in (space["states"][state][2] or [])[1::2]]
        level = [target for target in dict.fromkeys(targets) if target not in found]
        found |= dict.fromkeys(level, max(found.values()) + 1)
    return [found[state] for state in range(len(space["states"]))]


@pytest.mark.parametrize("name", ["r7-worked-example", "r10-wrong-order", "zab-a-commit-and-a-crash"])
def test_a_space_has_the_states_moves_depths_and_findings_of_an_exploration(name: str) -> None:
    space, explored = space_of(job(name)), search.explore(job(name).model, Limits())
    deep = depths(space)
    assert len(space["states"]) == explored.states
    assert sum(len(moves) // 2 for _, _, moves in space["states"]) == explored.transitions
    assert [deep.count(depth) for depth in range(max(deep) + 1)] == explored.levels
    answers = [(deep[number], space["truths"][truths][1]) for number, (_, truths, _) in enumerate(space["states"])]
    first = {
        prop["name"]: min(depth for depth, reasons in answers if place in reasons)
        for place, prop in enumerate(space["properties"])
        if any(place in reasons for _, reasons in answers)
    }
    assert first == {name: found.depth for name, found in explored.found.items()}


def test_a_limit_of_depth_is_kept_and_only_states_that_go_on_are_cut() -> None:
    space = space_of(replace(job("r10-wrong-order"), limits=Limits(depth=4)))
    deep = depths(space)
    assert max(deep) == 4
    assert {depth for depth, (_, _, moves) in zip(deep, space["states"], strict=True) if moves is None} == {4}


def test_a_space_above_the_limit_is_refused_and_the_depth_that_is_offered_fits() -> None:
    with pytest.raises(TooManyStatesError, match="more than 20 states can be reached") as error:
        space_of(job("r10-wrong-order"), most=20)
    depth = int(re.findall(r"limits: {depth: (\d+)}", str(error.value))[0])
    assert len(space_of(replace(job("r10-wrong-order"), limits=Limits(depth=depth)), most=20)["states"]) <= 20


def test_the_command_writes_one_file_and_refuses_what_it_cannot_write(tmp_path: Path) -> None:
    scenario = STORIES[0].parent / read_story(STORIES[0]).scenario
    ended = cli("explore", scenario, "--export", tmp_path / "page")
    assert (ended.code, [path.name for path in (tmp_path / "page").iterdir()]) == (0, ["index.html"])
    assert "27 states" in ended.out
    (tmp_path / "file").write_text("")
    assert cli("explore", scenario, "--export", tmp_path / "file").code == 2


def test_a_page_for_a_large_space_is_refused_with_the_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert MOST == 50_000
    monkeypatch.setattr("checker.explorer.export.page.space_of", partial(space_of, most=20))
    scenario = STORIES[1].parent / read_story(STORIES[1]).scenario
    ended = cli("explore", scenario, "--export", tmp_path)
    assert ended.code == 152
    assert "more than 20 states" in ended.err and not list(tmp_path.iterdir())


# -- stories -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name)
def test_every_story_exists_in_its_scenario_and_is_read_in_two_minutes(path: Path) -> None:
    """Every stop states what its text relies on, and `load_any` compares it with the state."""
    _, _, view = load_any(path)
    story = read_story(path)
    assert len(view["stops"]) == len(story.stops) >= 5
    assert all(stop.properties or stop.state for stop in story.stops)
    assert sum(len(stop.text.en.split()) for stop in story.stops) <= 2 * WORDS_A_MINUTE
    assert sum(len(stop.text.zh) for stop in story.stops) <= 2 * CHARACTERS_A_MINUTE


def test_the_local_page_has_the_story_too() -> None:
    loaded, _, view = load_any(STORIES[0])
    told, untold = Handlers([(loaded, "folder", view), (job("r18-lock"), "")]).jobs()["jobs"]
    assert (told["story"], untold["story"]) == (view, None)


def story(**last: Json) -> Story:
    words = {"en": "words", "zh": "文字"}
    stops = [{"text": words}, {"text": words, "moves": ["the operator stops server.2"]} | last]
    return msgspec.convert({"scenario": "", "title": words, "stops": stops}, Story)


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (
            {"moves": ["server.9 crashes"]},
            "stop 2: 'server.9 crashes' cannot happen there; what can happen: the operator",
        ),
        ({"moves": []}, "stop 2: it has no moves; write at least one"),
        ({"properties": {"OneLeader": "fails"}}, "stop 2: properties: OneLeader is not fails; it is trivial"),
        ({"properties": {"TwoLeaders": "fails"}}, "TwoLeaders is not fails; it is none; the names are OneLeader"),
        ({"state": {"server.2": {"state": "LEADING"}}}, "stop 2: state: server.2: state is not LEADING; it is down"),
        ({"state": {"server.9": {"state": "down"}}}, "server.9: state is not down; it is none; the names are none"),
    ],
)
def test_a_story_that_its_scenario_does_not_bear_out_is_refused_with_the_reason(last: Json, why: str) -> None:
    assert story_view(story(), job("r10-wrong-order"))["stops"][1]["path"] == [0]
    with pytest.raises(StoryError, match=re.escape(why)):
        story_view(story(**last), job("r10-wrong-order"))


def test_folded_lines_of_chinese_are_joined_without_a_space_and_those_of_english_with_one() -> None:
    words = {"en": "One, two.", "zh": "三台。 两台 过半， 3 号 Leader 在 16 次中，“server.2 joins server.3”"}
    view = story_view(story(text=words), job("r10-wrong-order"))
    joined = "三台。两台过半，3 号 Leader 在 16 次中，“server.2 joins server.3”"
    assert view["stops"][1]["text"] == {"en": "One, two.", "zh": joined}


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name)
def test_no_chinese_text_of_a_story_has_a_space_after_its_punctuation(path: Path) -> None:
    texts = [stop["text"]["zh"] for stop in load_any(path)[2]["stops"]]
    assert [text for text in texts if re.search("[，。；：、？）] | [，。；：、？（]", text)] == []


@pytest.mark.parametrize(
    "text", ["stops: []", "title: {en: a}", "scenario: x\ntitle: {en: a, zh: b}\nstops: [1]", "[]"]
)
def test_a_file_that_is_no_story_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.story.yaml"
    path.write_text(text)
    ended = cli("explore", path, "--export", tmp_path / "page")
    assert ended.code == 150
    assert "wrong.story.yaml: it is not a story" in ended.err and ended.err.count("\n") == 1
