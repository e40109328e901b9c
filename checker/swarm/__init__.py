"""Swarm verification: random deep walks through the tables, for models that no exhaustive search finishes.

`plans` derives everything about a walk from a seed and its number. `walker` executes some walks in lock step, `runner`
all those of one process, and `search` runs many processes and adds their counts, which are in `outcome`. `shorten`
makes the run to a finding shorter. `verdict` and `report` present the outcome.
"""
