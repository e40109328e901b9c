"""The page of results: the figures of one run as JSON, a plot and tables made from them.

`command` reads the command line, `measure` makes the run with the `tools`, `record` is its figures, and `plot` and
`text` show them.
"""
