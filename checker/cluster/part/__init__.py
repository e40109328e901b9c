"""The parts of a search on a cluster: each is a process with its own tables, rows, and share of the visited set.

`search_part` has the calls of the driver; `rounds` has the passes of a round, `files` the saved data. `messages` and
`pieces` describe the data that is exchanged.
"""
