"""The reduction of the state space: deliveries that are carried out at once, because their order does not matter.

`drains` decides which deliveries these are, `channels` compares operations on channels, and `futures` knows what a
process may still send. The theory is in docs/explanation-reduction.md.
"""
