"""The formats of a trace, by name: what `--format` shows and what `--traces` writes.

Every format is a view of one `Trace`; nothing here or behind it explores. A new one is a function and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from checker.traces.itf import to_itf
from checker.traces.mermaid import to_mermaid
from checker.traces.text import to_text
from checker.traces.trace import Trace


@dataclass(frozen=True)
class Format:
    """`suffix` is that of its files, without the first dot."""

    name: str
    suffix: str
    view: Callable[[Trace], str]


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("text", "txt", to_text),
        Format("mermaid", "mmd", to_mermaid),
        Format("itf", "itf.json", to_itf),
    )
}
