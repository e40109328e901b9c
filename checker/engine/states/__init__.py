"""The states of a search: the fingerprints of all that were seen, and the rows of those that wait.

`visited` has the set of fingerprints, `frontier` the blocks of rows and the origin of each state, and `waiting` the
blocks that wait for long, in memory or in a file, and the level that is being filled.
"""
