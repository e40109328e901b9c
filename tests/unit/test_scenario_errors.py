"""The errors of scenarios name the file, the line, the key and the correction; no other exception is raised."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.properties import ENSEMBLE_PROPERTIES
from checker.scenario import ScenarioError, from_source, from_text
from spec.config import ConfigError

THREE = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
FILES = {"zoo-3.cfg": THREE, "broken.cfg": "server.1=a:2888\n"}
BASE = "file: zoo-3.cfg\nservers: [1, 2, 3]\n"


def error_of(text: str) -> ScenarioError:
    with pytest.raises(ScenarioError) as raised:
        from_text(text, FILES.get, "s.yaml")
    return raised.value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "file: zoo-3.cfg\nservers:\n  1: {}\n  2: {file: zoo-33.cfg}\n",
            "s.yaml:4: servers.2.file: no such file: 'zoo-33.cfg'; name a file that can be read",
        ),
        (
            "file: zoo-3.cfg\nservers:\n  1: {}\n  7: {}\n",
            "s.yaml:1: file: zoo-3.cfg names server.1, server.2, server.3, and this is server 7; "
            "name a file with a line server.7",
        ),
        (
            BASE + "plan:\n  - {stop: 2}\n  - {restart: 4}\n",
            "s.yaml:5: plan[1].restart: unknown server 4; write one of 1, 2, 3",
        ),
        (
            BASE + "plan: [{restart: 2, wait: forever}]\n",
            "s.yaml:3: plan[0].wait: 'forever' is not known here; write one of rejoined, none",
        ),
        (
            BASE + "plan: [{stop: 2, start: 2}]\n",
            "s.yaml:3: plan[0]: 2 actions in one entry; "
            "write one of restart, stop and start, with the id of a server, or reconfig",
        ),
        (
            BASE + "plan: [{stop: 2}, {restart: 2}]\n",
            "s.yaml:3: plan: server 2 is stopped or started twice in a row; stop and start it in turn",
        ),
        (
            BASE + "expect: violated\nviolations: {OneLeadr: 3}\n",
            "s.yaml:4: violations.OneLeadr: no property that can be violated is called 'OneLeadr' here; "
            "did you mean OneLeader?",
        ),
        (
            BASE + "expect: violated\nviolations: {OneLeader: -1}\n",
            "s.yaml:4: violations.OneLeader: the depth is not a number of steps; write a whole number from 0",
        ),
        (
            BASE + "expect: violated\nviolations: [OneLeader]\n",
            "s.yaml:4: violations: it is not a map from properties to depths; write it like {OneLeader: 8}",
        ),
        (
            BASE + "expect: passed\nviolations: {OneLeader: 8}\n",
            "s.yaml:4: violations: the scenario expects no violation; write expect: violated, or remove the key",
        ),
        (BASE + "expect: error\n", "s.yaml:3: expect: 'error' is not a verdict; "
         "write one of violated, deadlock, incomplete, vacuous, passed"),
        (
            BASE + "opening: [{crash: 1}]\n",
            "s.yaml:3: opening[0]: no such step is possible here; "
            "order the steps as they can happen, and give faults their budgets",
        ),
        (
            BASE + "opening: [{restore: 1:1}]\n",
            "s.yaml:3: opening[0]: no such step is possible here; order the steps as they can happen, and give faults "
            "their budgets and clients and operators theirs, in workload",
        ),
        (BASE + "servers: [1]\n", "s.yaml:3: servers: this key is written twice; see line 2"),
        (
            "servers: [1, 2]\n",
            "s.yaml:1: servers[0]: it has no file; give it a file, or all servers one: file: zoo.cfg",
        ),
        (
            "file: zoo-3.cfg\nservers: [010]\n",
            "s.yaml:2: servers[0]: YAML would read 010 in its own way; "
            "write it in decimal without zeros before it, or in hexadecimal with 0x",
        ),
        (
            "file: zoo-3.cfg\nservers: &a [*a]\n",
            "s.yaml:2: servers[0]: an alias is used here; write its value out",
        ),
    ],
)  # fmt: skip
def test_an_error_says_where_what_and_what_would_be_right(text: str, said: str) -> None:
    assert str(error_of(text)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BASE + "opening: [{crash: 1, cut: [1, 2]}]\n", "s.yaml:3: opening[0]: 2 things in one entry; write one of "),
        ("file: !!binary eg==\n", "s.yaml:1: file: the tag tag:yaml.org,2002:binary is used here; "),
        (BASE + "yes: 1\n", "s.yaml:3: yes: unknown key; "),
    ],
    ids=["two steps in one", "a tag", "a word of YAML as a key"],
)
def test_what_only_yaml_would_understand_is_named(text: str, said: str) -> None:
    assert str(error_of(text)).startswith(said)


def test_what_is_no_yaml_is_told_with_its_line() -> None:
    error = error_of("file: zoo-3.cfg\nservers: [1, 2\n")
    assert (error.file, error.exit_code) == ("s.yaml", 150)
    assert error.line in (2, 3)
    assert "invalid YAML" in error.what


def test_what_is_wrong_with_a_zoo_cfg_is_a_config_error_of_that_file() -> None:
    with pytest.raises(ConfigError) as raised:
        from_text("file: broken.cfg\nservers: [1]\n", FILES.get, "s.yaml")
    assert (raised.value.problems[0].file, raised.value.problems[0].line) == ("broken.cfg", 1)


@pytest.mark.parametrize("source", [{}, {"kind": "other"}, {"kind": "scenario", "text": 1, "files": {}}])
def test_what_is_no_source_is_refused(source: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="not a source of a scenario"):
        from_source(source)


# Random text in a scenario is loaded or refused.

KEYS = """
    file name about servers history plan opening grain network rounds channel faults variants always sometimes final
    limits until_witnessed expect may_not_fire restart stop start wait settle arrive planned crash cut cut_off state
    votes leader epoch zxid late other_files capacity memory protocol zab disk commits clients anywhere sync async
    workload writes elections discovery one-step disconnects disconnect write log accepted_epoch torn-record value 1:1
    depth crashes rejoined fine oracle zoo-3.cfg LEADING down fast
""".split()  # noqa: SIM905 (a list would have a line for each)
WORDS = st.sampled_from([*KEYS, *ENSEMBLE_PROPERTIES]) | st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-2, 6) | st.integers() | st.floats() | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.integers(-1, 5), inner, max_size=4),
    max_leaves=12,
)


def loads_or_refuses(text: str) -> None:
    try:
        job = from_text(text, FILES.get, "s.yaml")
    except (ScenarioError, ConfigError) as error:
        assert str(error)
    else:
        json.dumps(job.source)


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_is_loaded_or_refused(text: str) -> None:
    loads_or_refuses(text)


@given(st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_loaded_or_refused(text: str) -> None:
    loads_or_refuses(text)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5))
@settings(max_examples=300, deadline=None)
def test_any_values_under_known_keys_are_loaded_or_refused(changes: dict[str, Any]) -> None:
    whole = {"file": "zoo-3.cfg", "servers": [1, 2, 3], **changes}
    loads_or_refuses(yaml.safe_dump(whole, allow_unicode=True))
