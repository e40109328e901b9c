"""The formats of a trace, by name: the values of `--format`, and the files that `--traces` writes.

Every format is a view of one `Trace`; it does not explore the model. A new format is a function and a line in
`FORMATS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from checker.traces.html import to_html
from checker.traces.itf import to_itf
from checker.traces.markdown import to_markdown
from checker.traces.pytest_format import to_pytest
from checker.traces.sequence_diagrams import to_mermaid, to_shiviz
from checker.traces.svg import to_svg
from checker.traces.text import to_text
from checker.traces.trace import Trace


@dataclass(frozen=True)
class Format:
    """A format of traces. `suffix` is that of its files without the first dot; `is_module`: Python imports them."""

    name: str
    suffix: str
    view: Callable[[Trace], str]
    is_module: bool = False

    def file_name(self, stem: str) -> str:
        """The file name of a trace, from the stem that all formats share: `a-b.svg`, and for a test `test_a_b.py`."""
        if self.is_module:
            return f"test_{re.sub(r'[^a-z0-9]+', '_', stem.lower()).strip('_')}.{self.suffix}"
        return f"{stem}.{self.suffix}"


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("text", "txt", to_text),
        Format("markdown", "md", to_markdown),
        Format("mermaid", "mmd", to_mermaid),
        Format("svg", "svg", to_svg),
        Format("html", "html", to_html),
        Format("itf", "itf.json", to_itf),
        Format("shiviz", "shiviz.log", to_shiviz),
        Format("pytest", "py", to_pytest, is_module=True),
    )
}
