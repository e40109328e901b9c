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
