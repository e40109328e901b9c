"""Guided stories: a few stops on one walk through a scenario, each with a short text in English and in Chinese.

A story is a file `NAME.story.yaml`:

    scenario: ../../spec/scenarios/r10-three-to-five/r10-wrong-order.yaml
    title: {en: Two leaders, zh: 两个 Leader}
    stops:
      - text: {en: Five servers follow server 2., zh: 五台服务器都跟随服务器 2。}
      - moves: [the operator stops server.2]
        properties: {OneLeader: holds}
        state: {server.2: {state: down}}
        text: {en: ..., zh: ...}

Rules of this module:

- Moves are captions, so that a story survives another order of the moves. A stop begins at the end of the stop before.
- The text of a stop relies on `properties` and `state`. A story is refused where a caption is not possible, or
  where the state differs.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from checker.command import CommandError, ExitCode
from checker.engine.model import Row
from checker.engine.semantics import successors
from checker.engine.values import show
from checker.job import Job, Json
from checker.scenario import load, shipped
from checker.scenario.yaml_lines import read_yaml
from checker.traces.trace import lanes_of, truths
from checker.user_files import SCENARIO, TooLargeError, read_bytes
from spec.releases import Release
from spec.variants import Variant

SUFFIX = ".story.yaml"
LISTED = 8  # captions that an error names
_WIDE = r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]"
_STOP = r"[\u3000-\u303f\uff00-\uffef]"
_FOLD = re.compile(rf"(?<={_WIDE}) (?={_WIDE})|(?<={_STOP}) | (?={_STOP})")


class StoryError(CommandError):
    """A story that cannot be used; the message gives the file, the stop, the reason and the correction."""

    exit_code = ExitCode.SCENARIO


class Words(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A text in each language."""

    en: str
    zh: str


class StoryStop(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The moves from the stop before, the facts after them, and the text."""

    text: Words
    moves: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}
    state: Mapping[str, Mapping[str, str]] = {}


class Story(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A story; `scenario` is the path of its scenario from the folder of its file."""

    scenario: str
    title: Words
    stops: Annotated[tuple[StoryStop, ...], msgspec.Meta(min_length=1)]


def read_story(path: Path) -> Story:
    """Read a story. Raises StoryError, and ScenarioError for a text that is no YAML."""
    try:
        text = read_bytes(path, SCENARIO).decode("utf-8")
        return msgspec.convert(read_yaml(text, path.name).value, Story)
    except (TooLargeError, OSError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise StoryError(f"{path}: it is not a story ({error}); see docs/how-to-explore.md") from None


def load_any(
    path: Path, variants: Iterable[Variant] = (), like: Release | None = None, presenter: str | None = None
) -> tuple[Job, Path, Json]:
    """The job of a scenario, or of the scenario of a story: the job, the path of the scenario, and the story or None.

    A shipped scenario may be called by its name. `presenter` is the name of one in the Python file of a model.

    Raises StoryError, and the errors of `checker.scenario.load`.
    """
    if not path.name.endswith(SUFFIX):
        path = shipped(path)
        return load(path, variants, like, presenter), path, None
    story = read_story(path)
    scenario = path.parent / story.scenario
    job = load(scenario, variants, like)
    return job, scenario, story_view(story, job)


def story_view(story: Story, job: Job) -> dict[str, Json]:
    """The story for the page: its title, and for each stop its path and its text. Raises StoryError."""
    row, path, stops = job.model.initial(), [], []
    for number, stop in enumerate(story.stops, 1):
        place = f"{job.name}: stop {number}"
        if number > 1 and not stop.moves:
            raise StoryError(f"{place}: it has no moves; write at least one")
        for caption in stop.moves:
            moves = [(job.presenter.caption(move), after) for move, after in successors(job.model, row)]
            ordinal = next((ordinal for ordinal, (text, _) in enumerate(moves) if text == caption), None)
            if ordinal is None:
                captions = "; ".join(text for text, _ in moves[:LISTED]) or "nothing"
                raise StoryError(f"{place}: {caption!r} cannot happen there; what can happen: {captions}")
            row = moves[ordinal][1]
            path.append(ordinal)
        _check(place, stop, job, row)
        stops.append({"path": list(path), "text": _joined(stop.text)})
    return {"title": _joined(story.title), "stops": stops}


def _joined(words: Words) -> dict[str, Json]:
    """The texts for the page. Where YAML folds a line between two Chinese characters, no space is left.

    A space between Chinese and Latin text stays.
    """
    return {"en": words.en, "zh": _FOLD.sub("", words.zh)}


def _check(place: str, stop: StoryStop, job: Job, row: Row) -> None:
    """Raises StoryError where the state differs from the stop."""
    actual = {name: truth.value for name, truth in truths(job.model, row).items()}
    _compare(f"{place}: properties", stop.properties, actual)
    lanes = {lane: {name: show(value) for name, value in fields.items()} for lane, fields in lanes_of(job, row).items()}
    for lane, fields in stop.state.items():
        _compare(f"{place}: state: {lane}", fields, lanes.get(lane, {}))


def _compare(place: str, stated: Mapping[str, str], actual: Mapping[str, str]) -> None:
    for name, value in stated.items():
        if actual.get(name) != value:
            right = actual.get(name, f"none; the names are {', '.join(actual) or 'none'}")
            raise StoryError(f"{place}: {name} is not {value}; it is {right}")
