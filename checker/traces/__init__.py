"""Traces: runs of a model that end in a finding, in every format a reader or a tool may want.

`trace_of` makes a `Trace` from what an exploration found; `checker.traces.formats` has every format that shows one by
its name; `read_trace`, `read_itf` and `replay` bring a saved one back and run it again. Nothing here explores.
"""

from checker.traces.itf import TraceFileError, read_itf, to_itf
from checker.traces.lens import DefaultLens
from checker.traces.mermaid import to_mermaid
from checker.traces.replay import Replayed, ReplayError, replay
from checker.traces.saved import read_trace
from checker.traces.text import to_text
from checker.traces.trace import Trace, TraceStep, Truth, trace_of, walk_of

__all__ = [
    "DefaultLens",
    "ReplayError",
    "Replayed",
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
