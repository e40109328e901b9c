"""A trace as an SVG document: a file that stands alone, with its style in it and nothing from elsewhere."""

from __future__ import annotations

from checker.traces.picture import STYLE, picture
from checker.traces.trace import Trace

__all__ = ["STYLE", "picture", "to_svg"]


def to_svg(trace: Trace) -> str:
    """The document, with a newline at the end; on the screen or in a page it is read on white."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{picture(trace)}\n'
