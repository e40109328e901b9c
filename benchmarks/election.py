"""The size of the election model, by number of servers: the counts that every tool has to find.

The model is `spin/election.pml`. SPIN's search of it ends with these numbers, as did searches of independently written
implementations of the same rules. Rules: transitions count every enabled event of every state, also an event that leads
to a known state; a tool that counts otherwise converts before it compares.
"""

from dataclasses import dataclass

from benchmarks.outcome import WrongCount


@dataclass(frozen=True)
class Size:
    """States (the first one included) and transitions of a model."""

    states: int
    transitions: int


SIZES = {
    3: Size(states=6_544, transitions=23_905),
    4: Size(states=13_822_383, transitions=87_985_030),
}


def workload(servers: int) -> str:
    """The name of the model in the table."""
    return f"election, {servers} servers"


def full_workload(servers: int) -> str:
    """The name of the whole FastLeaderElection, cold start, in the table."""
    return f"FastLeaderElection, {servers} servers"


def check_size(tool: str, servers: int, found: Size) -> None:
    """Raise `WrongCount` unless `tool` found exactly the counts of the model."""
    expected = SIZES[servers]
    if found.states != expected.states:
        raise WrongCount(tool, "states", found.states, expected.states)
    if found.transitions != expected.transitions:
        raise WrongCount(tool, "transitions", found.transitions, expected.transitions)
