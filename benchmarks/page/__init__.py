"""The page of results: the figures of one run as JSON, a plot and tables made from them.

`command` makes the run with the `tools`, `record` is its figures, and `text` shows them.
"""
