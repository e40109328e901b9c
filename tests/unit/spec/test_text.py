"""Numbers and lines of foreign text. Expected values: `Integer.parseInt` and `Long.parseLong` of Java."""

from argparse import ArgumentTypeError

import pytest

from spec.text import (
    LONGEST_EXCERPT,
    between,
    decimal,
    decimals_between,
    excerpt,
    integer,
    integers,
    on_a_line,
    required_integer,
)

LONG = 1 << 63


@pytest.mark.parametrize("text", ["", "-", "1_000", " 1", "1 ", "1.0", "0x10", "\u0661", "\u00b2", "9" * 5000, "1\n"])
def test_what_java_refuses_is_no_number(text: str) -> None:
    assert integer(text, -LONG, LONG - 1) is None


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("+7", 7), ("0" * 900 + "12", 12), (str(-LONG), -LONG)])
def test_a_sign_and_leading_zeros_are_read(text: str, value: int) -> None:
    assert integer(text, -LONG, LONG - 1) == value


def test_both_bounds_are_included() -> None:
    assert [integer(text, 1, 3) for text in "01234"] == [None, 1, 2, 3, None]


def test_hexadecimal_digits_have_no_prefix() -> None:
    assert [integer(text, 0, 255, 16) for text in ("fF", "0xff", "100")] == [255, None, None]


@pytest.mark.parametrize("text", ["", ".", "1.", ".5", "nan", "inf", "1e3", "1_0.0", "\u0661.0", "9" * 400])
def test_a_fraction_is_written_with_ascii_digits(text: str) -> None:
    assert decimal(text, 0, 1e9) is None


def test_a_fraction_has_both_bounds() -> None:
    assert [decimal(text, 0.5, 2) for text in ("0.4", "0.5", "2", "2.1")] == [None, 0.5, 2, None]


def test_several_numbers_are_read_together_or_not_at_all() -> None:
    assert integers(["1", "2", "3"], 1, 3) == (1, 2, 3)
    assert [integers(text.split(","), 1, 3) for text in ("", "1,4", "1,x", "1,,2")] == [None] * 4


@pytest.mark.parametrize("text", ["1_0", "\u0661", "11", "-1", "", "9" * 5000])
def test_an_option_has_one_error_that_says_what_would_be_right(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"is not a whole number from 0 to 10$"):
        between(0, 10)(text)
    with pytest.raises(ArgumentTypeError, match=r"is not a number from 0 to 10$"):
        decimals_between(0, 10)(text)


def test_the_error_of_a_required_number_is_short() -> None:
    with pytest.raises(ValueError, match="is not a whole number") as refused:
        required_integer("9" * (2 << 20))
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("character", ["\x1b", "\x00", "\x7f", "\x9b", "\u202e", "\u200b", "\ufeff", "\ud800"])
def test_a_character_that_nobody_sees_appears_as_its_code(character: str) -> None:
    assert on_a_line(f"a{character}b") == f"a\\u{ord(character):04x}b"


def test_no_character_that_a_font_leaves_out_is_passed_on() -> None:
    """Unicode 15.1, DerivedCoreProperties.txt, Default_Ignorable_Code_Point; one of each range, with both ends."""
    ignorable = "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180f\u200b\u200f\u202a\u202e\u2060\u206f\u3164"
    ignorable += (
        "\ufe00\ufe0f\ufeff\uffa0\ufff0\ufff8\U0001bca0\U0001bca3\U0001d173\U0001d17a\U000e0000\U000e0041\U000e0fff"
    )
    assert on_a_line(ignorable).isascii()
    assert on_a_line("a\U000e0041") == "a\\U000e0041"


def test_a_line_break_is_a_blank() -> None:
    assert on_a_line("a\nb\r\nc\u2028d") == "a b c d"


def test_an_excerpt_of_megabytes_is_short() -> None:
    assert len(excerpt("\x1b" * (2 << 20))) == LONGEST_EXCERPT + 3
