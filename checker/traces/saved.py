"""Reads a saved trace back, whichever of the formats that hold one it was saved in.

An ITF file is a trace; an HTML page and a test for pytest carry one, as it was written. The other formats are for
reading, and say so. Everything else about a file's content is `checker.traces.itf`'s to judge.
"""

from __future__ import annotations

import re

from checker.traces.itf import TraceFileError, read_itf
from checker.traces.trace import Trace

IN_PAGE = re.compile(r'<script type="application/json" id="itf">(.*?)</script>', re.DOTALL)
IN_TEST = re.compile(r'^TRACE = r"""\n(.*?)^}\n"""', re.DOTALL | re.MULTILINE)


def read_trace(text: str, name: str = "the trace") -> Trace:
    """The trace in a file's text; `name` is what errors call the file. Raises TraceFileError."""
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return read_itf(text, name)
    page, test = IN_PAGE.search(text), IN_TEST.search(text)
    if page is not None:
        return read_itf(page[1], name)
    if test is not None:
        return read_itf(test[1] + "}", name)
    raise TraceFileError(
        f"{name} is not a trace: it is no ITF file, and no page or test that holds one; "
        "of what --traces writes, the .itf.json, .html and .py files replay"
    )


def for_page(itf: str) -> str:
    """An ITF file's text as the content of a script element: JSON that cannot end the element."""
    return itf.replace("<", "\\u003c")
