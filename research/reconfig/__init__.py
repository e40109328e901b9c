"""Reconfigurations of real servers: the packets, files and answers at each step, for a page of facts.

__main__        `python -m research.reconfig`, and the list of measurements
facts           a table of facts, and its place in the page
packets, moments, errors, resizing    one reconfiguration: bytes, files, refusals, pauses
crash_table     a crash at each step, measured (crash_measured) and computed by the model (crash_computed)
defects         the runs of `harness.reproduce.by_hand`, measured
truncated, promoted, suspicions       further runs that show defects
"""
