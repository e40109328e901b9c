"""Liveness: goals that must stay reachable (RECOVERABLE), and goals that every fair run must reach (EVENTUALLY).

`plain_liveness` judges them on rows, `graph_liveness` on numbers. Both report a violation as a run of
`lasso`, which checks it.
"""
