"""The variants of the specification on their releases: runs that use a variant, and end in no violation.

A shortest violation is one run of a variant, and the releases show it (`quorate reproduce`). A variant that can do more
than its releases is wrong all the same: it makes runs that no server makes. So other runs of each variant, chosen from
a seed, are executed on each of its releases, step by step. `choice` chooses the runs, `visible` compares two states as
the driver sees them, and `table` makes the page. `python -m tests.reality.variants` carries them out.
"""
