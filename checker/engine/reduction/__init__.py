"""The reduction of the state space: orders of events and states that are left out, because the answers are the same.

Three reductions exist. `drains` carries deliveries out at once, `stubborn` follows the moves of some processes alone,
and `symmetry` keeps one of the states that differ in names.

`drains` decides which deliveries these are, `channels` compares operations on channels, `futures` has the operations
that a process may still send, and `origins` the senders of each operation. `events` and `views` have what a process may
do while certain messages may arrive, and `plan` has the processes and channels in numbers. The theory:
docs/explanation-reduction.md.
"""
