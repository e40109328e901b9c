"""Text of other authors made safe to show as Markdown, and suggestions for misspelt words.

No text of a name or a value may turn into markup, and none calls a user or refers to an issue. Markdown is written for
GitHub's flavour. A document has a foreign text as `escaped`, `code` or `fenced`, and in no other way. Source: the
GitHub Flavored Markdown specification, "Backslash escapes", "Code spans", "Tables (extension)", "Fenced code blocks".
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from html import escape

from spec.text import on_a_line, on_lines


def one_of(words: Iterable[str]) -> str:
    """Return the advice to write one of these words."""
    return "write one of " + ", ".join(words)


def similar(word: object, words: Iterable[str]) -> str | None:
    """Return the most similar valid word for a misspelt word; None if none is similar."""
    folded = {name.casefold(): name for name in words}
    close = get_close_matches(str(word)[:80].casefold(), folded, n=1)
    return folded[close[0]] if close else None


def nearest(word: object, words: Iterable[str]) -> str:
    """Return the advice for a misspelt word: the most similar valid word, or all valid words."""
    valid = list(words)
    close = similar(word, valid)
    return f"did you mean {close}?" if close else one_of(valid)


SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")  # all characters that a backslash may escape
UNTOUCHED = frozenset(",.:;/=+ '\"()?%-{}")  # those of them that are never markup within a line

CALL = re.compile(r"(?<![A-Za-z0-9])(\\@)(?=[A-Za-z0-9])|(\\#|GH-)(?=\d)", re.IGNORECASE)
"""What GitHub takes for a user or an issue, in escaped text: it looks for them after the escapes are gone."""


def escaped(text: str) -> str:
    """Text that Markdown shows unchanged, on one line."""
    text = SPECIAL.sub(lambda match: match[0] if match[0] in UNTOUCHED else "\\" + match[0], on_a_line(text))
    # Escape text that would begin a line as a list, a quotation or a number, or be read as an address or an emoji.
    text = re.sub(r"^([-+]|\d+[.)])|(://|\bwww\.)|:(?=\w+:)", _broken, text)
    return CALL.sub(lambda match: f"{match[0]}&#8203;", text)


def _broken(match: re.Match[str]) -> str:
    whole = match[0]
    if whole[-1] in ".)":
        return f"{whole[:-1]}\\{whole[-1]}"
    return "\\" + whole


def code(text: str) -> str:
    """A code span that shows a text unchanged, on one line; not for a cell of a table."""
    text, fence = on_a_line(text) or " ", _fence(text, 1)
    # A blank at both ends is removed by the reader; a backtick at an end would belong to the fence.
    around = " " if "`" in (text[0], text[-1]) or (text[0] == text[-1] == " " and text.strip()) else ""
    return f"{fence}{around}{text}{around}{fence}"


def fenced(text: str, language: str = "text") -> list[str]:
    """The lines of a code block that shows a text unchanged."""
    fence = _fence(text, 3)
    return [f"{fence}{language}", *on_lines(text.rstrip("\n")).split("\n"), fence]


def _fence(text: str, shortest: int) -> str:
    """A row of backticks that is longer than any in a text."""
    return "`" * max(shortest, 1 + max(map(len, re.findall("`+", text)), default=0))


def folded(summary: str, lines: Iterable[str]) -> list[str]:
    """Lines that are hidden behind a summary until a reader opens them."""
    return ["<details>", f"<summary>{escape(on_a_line(summary), quote=False)}</summary>", "", *lines, "", "</details>"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table of plain texts."""
    lines = [head, ["---"] * len(head), *([escaped(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def capital(text: str) -> str:
    """A sentence with its first letter in upper case."""
    return text[:1].upper() + text[1:]
