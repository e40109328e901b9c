"""A trace as a self-contained SVG document, which contains its style and loads nothing."""

import hashlib

from checker.html_text import document
from checker.traces.svg.picture import picture
from checker.traces.trace import Trace

__all__ = ["in_notebook", "picture", "to_svg"]


def to_svg(trace: Trace) -> str:
    """The document, with a newline at the end; its background is white."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{picture(trace)}\n'


def in_notebook(trace: Trace) -> str:
    """The picture as a part of a page with other pictures: its ids are its own."""
    prefix = hashlib.sha256(repr(trace).encode()).hexdigest()[:12]
    return document(f'<div style="overflow-x:auto">{picture(trace, prefix=f"trace-{prefix}-")}</div>')
