"""Reads a saved trace, in any of the formats that contain one.

An ITF file is a trace; an HTML page and a pytest test contain one unchanged. The other formats are for readers, and the
error for them says so. `checker.traces.itf` judges all other content of a file.
"""

from __future__ import annotations

import re

from checker.traces.itf import TraceFileError, read_itf
from checker.traces.trace import Trace

IN_PAGE = re.compile(r'<script type="application/json" id="itf">(.*?)</script>', re.DOTALL)
IN_TEST = re.compile(r'^TRACE = r"""\n(.*?)^}\n"""', re.DOTALL | re.MULTILINE)


def read_trace(text: str, name: str = "the trace") -> Trace:
    """Read the trace in a file's text; `name` is the file's name in errors. Raises TraceFileError."""
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
