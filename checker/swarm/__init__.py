"""Swarm verification: random deep walks through the tables, for models that no exhaustive search finishes.

`walker` plans and executes the walks of one process, and `search` runs many processes and adds their counts, which are
in `outcome`. `shorten` makes the run to a finding shorter. `report` judges the outcome and presents it.
"""
