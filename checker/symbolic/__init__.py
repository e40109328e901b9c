"""Questions answered by the solver z3 instead of by exploring: do quorums meet, and why.

Rules this package keeps:

- An answer is a value that names its witnesses: two disjoint quorums, or the numbers that refute a claim.
- The solver is believed when it says no, and checked when it says yes: every witness is put before
  `spec.quorum` again.
- z3 takes a while to load. Importing this package or `report` does not load it; asking a question does.

`disjoint` asks about two given views, `proofs` about any number of servers, `report` words the answer for
the person who asked.
"""
