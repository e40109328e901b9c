"""The reduction of the state space: orders of events that are left out, because they lead to the same answers.

Two reductions exist. `drains` carries deliveries out at once, and `stubborn` follows the moves of some processes alone.

`drains` decides which deliveries these are, `channels` compares operations on channels, `futures` has the operations
that a process may still send, and `origins` the senders of each operation. `events` and `views` have what a process may
do while certain messages may arrive, and `plan` has the processes and channels in numbers. The theory:
docs/explanation-reduction.md.
"""
