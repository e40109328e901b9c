"""The reduction of the state space: deliveries that are carried out at once, because their order does not matter.

`drains` decides which deliveries these are, `channels` compares operations on channels, `futures` has the operations
that a process may still send, and `origins` the senders of each operation. The theory: docs/explanation-reduction.md.
"""
