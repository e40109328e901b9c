"""The benchmarks: measurements of speed and memory with one command, ``python -m benchmarks``.

Rules: a figure comes from a run made now, on this machine, one search at a time; an unexpected count of states or
transitions is an error and never a figure; ratios are computed within one run of the command; a measurement that could
not be made is shown as missed, and nothing is installed.
"""
