"""Text for messages: names of other authors made safe to print, and suggestions for misspelt words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

UNREADABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")


def on_a_line(text: str) -> str:
    """Return the text on one line; control characters and unpaired surrogates appear as their codes."""
    return UNREADABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", " ".join(text.splitlines()))


def one_of(words: Iterable[str]) -> str:
    """Return the advice to write one of these words."""
    return "write one of " + ", ".join(words)


def similar(word: object, words: Iterable[str]) -> str | None:
    """Return the most similar valid word for a misspelt word; None if none is similar."""
    folded = {each.casefold(): each for each in words}
    close = get_close_matches(str(word)[:80].casefold(), folded, n=1)
    return folded[close[0]] if close else None


def nearest(word: object, words: Iterable[str]) -> str:
    """Return the advice for a misspelt word: the most similar valid word, or all valid words."""
    valid = list(words)
    close = similar(word, valid)
    return f"did you mean {close}?" if close else one_of(valid)
