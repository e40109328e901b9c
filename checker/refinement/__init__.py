"""The refinement: each step of the specification is a step of abstract Zab, or changes nothing there.

Abstract Zab (`checker.symbolic.zab`) is proved safe for any number of servers. This package relates `spec.zab` to it:

- `abstract_steps`: the abstract actions of one step of a server, as a value; and the history variables, which no server
  has: promises, acknowledgements, commits, and the reigns themselves; and the mapping from a step to these actions;
- `judgement`: the conditions of the actions, evaluated in the finite state that disks and history variables are.

The conditions are those of `checker.symbolic.zab.actions`, the same functions that the proof uses. The refinement is
checked on the steps that are explored, walked or replayed. It is not proved.
"""
