"""Traces: runs of a model that end in a finding, in formats for readers and for other tools.

`trace_of` makes a `Trace` of an exploration's finding. `checker.traces.formats` lists the formats by name. `read_trace`
and `read_itf` read a saved trace, and `replay` runs it again. This package explores nothing.
"""

from checker.traces.itf import TraceFileError, read_itf, read_trace, to_itf
from checker.traces.replay import ReplayError, ReplayResult, replay
from checker.traces.sequence_diagrams import to_mermaid
from checker.traces.svg import in_notebook
from checker.traces.text import to_text
from checker.traces.trace import Trace, TraceStep, Truth, trace_of, walk_of

__all__ = [
    "ReplayError",
    "ReplayResult",
    "Trace",
    "TraceFileError",
    "TraceStep",
    "Truth",
    "read_itf",
    "read_trace",
    "replay",
    "to_itf",
    "to_mermaid",
    "to_text",
    "trace_of",
    "walk_of",
]

Trace.drawn = in_notebook
