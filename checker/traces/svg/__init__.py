"""A trace as a self-contained SVG document, which contains its style and loads nothing."""

from checker.traces.svg.picture import picture
from checker.traces.trace import Trace

__all__ = ["picture", "to_svg"]


def to_svg(trace: Trace) -> str:
    """The document, with a newline at the end; its background is white."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{picture(trace)}\n'
