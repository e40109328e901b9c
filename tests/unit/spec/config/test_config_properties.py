"""The text format of zoo.cfg, line by line as the documentation of `java.util.Properties.load` describes it."""

import pytest

from spec.config.problems import Findings, java_split
from spec.config.properties import last_of_each, read_properties
from spec.text import INT, integer


def read(text: str) -> list[tuple[str, str]]:
    return [(p.key, p.value) for p in read_properties(text, "zoo.cfg", Findings())]


@pytest.mark.parametrize(
    "line", ["tickTime=2000", "tickTime:2000", "tickTime 2000", " \ttickTime = 2000", "tickTime\t:2000"]
)
def test_equals_sign_colon_and_blank_separate_key_and_value(line: str) -> None:
    assert read(line) == [("tickTime", "2000")]


PAIRS = {
    # So a colon may also separate the key of a server line.
    "only the first separator separates": (
        "server.1:a:2888:3888\nkey==value", [("server.1", "a:2888:3888"), ("key", "=value")],
    ),
    "blanks at the end of a value stay": ("dataDir=/data \t", [("dataDir", "/data \t")]),
    "a comment mark inside a line is part of it": ("dataDir=/data # here", [("dataDir", "/data # here")]),
    "a backslash at the end continues the line": (
        "group.1=1:\\\n      2:\\\n   3\ntickTime=1", [("group.1", "1:2:3"), ("tickTime", "1")],
    ),
    "two backslashes at the end are one backslash": (
        "dataDir=c:\\\\\ntickTime=1", [("dataDir", "c:\\"), ("tickTime", "1")],
    ),
    "a comment does not continue": ("# old \\\ntickTime=1", [("tickTime", "1")]),
    "what follows a continued line is no comment": ("dataDir=/a\\\n#b", [("dataDir", "/a#b")]),
    "a continued line may be the last": ("dataDir=/a\\", [("dataDir", "/a")]),
    # Observed with Java 17; in the middle of a text such a line has no effect.
    "a lone backslash at the end is an empty key": ("\\\n", [("", "")]),
    "a lone backslash in the middle is nothing": ("\\\n\na=1", [("a", "1")]),
    "a blank line ends a continued one": ("dataDir=/a\\\n\ntickTime=1", [("dataDir", "/a"), ("tickTime", "1")]),
    "other line ends of Unicode do not end a line": ("a=1\x0b2\x852", [("a", "1\x0b2\x852")]),
    "escapes are resolved in keys and values": (r"a\=b=\t\u0041\q", [("a=b", "\tAq")]),
    "a key may have no value": ("dataDir", [("dataDir", "")]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "pairs"), PAIRS.values(), ids=PAIRS)
def test_a_text_has_these_keys_and_values(text: str, pairs: list[tuple[str, str]]) -> None:
    assert read(text) == pairs


@pytest.mark.parametrize("line", ["# tickTime=1", "! tickTime=1", "  #tickTime=1", "", "   \t"])
def test_comments_and_blank_lines_say_nothing(line: str) -> None:
    assert read(line) == []


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_end_as_on_any_system(end: str) -> None:
    assert read(f"a=1{end}b=2{end}") == [("a", "1"), ("b", "2")]


def test_a_malformed_unicode_escape_is_an_error_on_its_line() -> None:
    findings = Findings()
    read_properties("a=1\nb=\\u12g4\n", "zoo.cfg", findings)
    with pytest.raises(Exception, match=r"zoo\.cfg:2: malformed escape"):
        findings.warnings()


def test_a_property_knows_the_line_it_begins_on() -> None:
    found = read_properties("# one\n\na=1\\\n2\nb=3", "zoo.cfg", Findings())
    assert [(p.key, p.line) for p in found] == [("a", 3), ("b", 5)]


def test_of_a_repeated_key_the_last_line_counts_and_a_warning_names_the_first() -> None:
    findings = Findings()
    kept = last_of_each(read_properties("a=1\nb=2\na=3", "zoo.cfg", findings), "zoo.cfg", findings)
    assert kept["a"].value == "3"
    assert [str(w) for w in findings.warnings()] == [
        "zoo.cfg:3: a is set again, and line 1 is ignored; keep one of the two lines"
    ]


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1_0", "0x1", "2147483648", "-2147483649", "1.0", "x"])
def test_java_reads_no_number_in(text: str) -> None:
    assert integer(text, *INT) is None


@pytest.mark.parametrize(("text", "number"), [("+5", 5), ("-1", -1), ("007", 7), ("2147483647", 2147483647)])
def test_java_reads_a_number_in(text: str, number: int) -> None:
    assert integer(text, *INT) == number


@pytest.mark.parametrize(
    ("text", "parts"), [("a:b", ["a", "b"]), ("a::", ["a"]), (":a", ["", "a"]), ("", [""]), ("::", [])]
)
def test_java_drops_empty_parts_at_the_end(text: str, parts: list[str]) -> None:
    assert java_split(text, ":") == parts
