"""Words that others have chosen (names, values, captions), fit to be printed: whatever is shown goes through here."""

from __future__ import annotations

import re

UNREADABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")


def on_a_line(text: str) -> str:
    """Text on one line, in which what nobody can see, or what a terminal would obey, stands as its code."""
    return UNREADABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", " ".join(text.splitlines()))
