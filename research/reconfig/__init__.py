"""Reconfigurations of real servers: the packets, files and answers at each step, for a page of facts.

__main__        `python -m research.reconfig`, and the list of measurements
servers         real servers that can be reconfigured: names, files, packets and answers
facts           a table of facts, its place in the page, and what measurements share
packets, moments, errors, resizing    one reconfiguration: bytes, files, refusals, pauses
crash_table     a crash at each step, measured (crash_measured) and computed by the model (crash_computed)
forgotten, pending, epochs, truncated, promoted, suspicions    the runs that show defects
"""
