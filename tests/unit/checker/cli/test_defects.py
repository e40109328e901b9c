"""The command `defects`: the answer for a release, for one defect, and its errors.

Expected values: `tests/unit/spec/census/test_census.py` says where the releases of a defect come from.
"""

import json

import pytest

from spec.census.defect import Effect
from spec.census.table import CENSUS
from tests.support.command_line import cli


def test_the_answer_for_a_release_has_condition_and_remedy_and_the_most_dangerous_first() -> None:
    ended = cli("defects", "3.8.4")
    assert ended.code == 0
    headings = [line.removeprefix("## ") for line in ended.out.splitlines() if line.startswith("## ")]
    words = [next(effect for effect in Effect if text.lower().startswith(effect.value)) for text in headings[:-1]]
    assert words == [effect for effect in Effect if effect in words]
    assert headings[-1].startswith("Not established")
    answer = ended.out[ended.out.index("\nZOOKEEPER-4646\n") :].split("\n\n")[0]
    assert "when:" in answer
    assert "remedy:" in answer
    assert "3.8.5, 3.9.2" in answer
    assert "seen on 3.8.0" in answer


def test_what_is_not_established_is_never_called_absent() -> None:
    ended = cli("defects", "3.9.5")
    established, _, doubtful = ended.out.partition("## Not established")
    assert "ZOOKEEPER-5010" not in established
    assert "ZOOKEEPER-5010" in doubtful
    assert "nothing here says that it is free of them" in doubtful


def test_the_data_name_every_release_of_a_defect() -> None:
    data = json.loads(cli("defects", "3.8.4", "--json").out)
    assert data["release"] == "3.8.4"
    (late,) = (row for row in data["defects"] if row["name"] == "ZOOKEEPER-4712")
    assert (late["releases"]["3.9.2"], late["releases"]["3.9.3"]) == ("yes", "no")
    assert late["fixed_in"] == ["3.9.3"]
    assert {row["releases"]["3.8.4"] for row in data["not_established"]} == {"unknown"}


@pytest.mark.parametrize("name", CENSUS)
def test_each_defect_has_a_command(name: str) -> None:
    ended = cli("defects", name.lower())
    assert ended.code == 0
    assert ended.out.startswith(f"# {name}: ")
    assert "remedy:" in ended.out


def test_the_names_of_all_defects_are_listed() -> None:
    listed = cli("defects").out
    assert all(name in listed for name in CENSUS)
    assert [row["name"] for row in json.loads(cli("defects", "--json").out)["defects"]] == list(CENSUS)


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("3.9.6", "the release '3.9.6' is not in the table; the nearest known: 3.9.5"),
        ("3.3.6", "the nearest known: 3.4.0"),
        ("4.0.0", "the nearest known: 3.9.5"),
        ("3.8", "the release '3.8' is not in the table"),
        ("3.8.4.1\x1b[31m", "is not in the table"),
        ("ZOOKEEPER-464", "did you mean ZOOKEEPER-4646?"),
        ("newest", "no known defect is called 'newest'"),
        ("", "no known defect is called ''"),
    ],
)
def test_a_subject_that_is_not_known_is_one_error(subject: str, said: str) -> None:
    ended = cli("defects", subject)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert said in ended.err
    assert "\x1b" not in ended.err
    assert len(ended.err.splitlines()) == 1
