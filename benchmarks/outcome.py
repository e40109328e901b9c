"""The result of a measurement: rows, or a named error with the reason why there is no figure.

The size of the election model is known: SPIN's search of `spin/election.pml` ends with these numbers, as did searches
of independently written implementations of the same rules. Transitions count every enabled event of every state, also
one that leads to a known state; a tool that counts otherwise converts before it compares.

Rules: a row is pure data and independent of other rows (the table computes ratios); sizes are in bytes and times in
seconds; every reason for a missing figure is a subclass of `NotMeasured`, so that the command can show the reason in
place of the figure and continue with the next measurement.
"""

from dataclasses import dataclass

SPIN = "SPIN"
"""The `tool` of the rows that ratios refer to."""


class NotMeasured(Exception):  # noqa: N818 - it reads as the table prints it: "not measured: ..."
    """A measurement without a figure; the message gives the reason and the remedy."""


class ToolMissing(NotMeasured):
    """A program that the measurement needs is not on the PATH."""

    def __init__(self, tool: str, package: str) -> None:
        super().__init__(f"{tool} is missing (apt-get install {package})")
        self.tool = tool
        self.package = package


class ToolFailed(NotMeasured):
    """A program ended with an error, or its output was not that of a finished search."""


class WrongCount(NotMeasured):
    """A search ended with another number of states or transitions than that of the model."""

    def __init__(self, tool: str, what: str, found: int, expected: int) -> None:
        super().__init__(f"{tool} found {found:,} {what} where the model has {expected:,}")
        self.what = what
        self.found = found
        self.expected = expected


@dataclass(frozen=True)
class Row:
    """One figure: a tool explored a workload completely.

    `seconds` is the time of the search alone; `setup_seconds` is the time before it (generating, compiling).
    `peak_bytes` is the peak resident size of the process that searched, `baseline_bytes` its size when the search
    begins, after loading and compiling (0 for a program that is nothing but its search). `python_steps` and
    `python_seconds` are the calls of step functions in Python and their time, if they were measured.
    """

    tool: str
    workload: str
    states: int
    transitions: int
    seconds: float
    setup_seconds: float
    peak_bytes: int
    baseline_bytes: int = 0
    python_steps: int | None = None
    python_seconds: float | None = None

    @property
    def states_per_second(self) -> float:
        """New states found in a second of search."""
        return self.states / self.seconds

    @property
    def transitions_per_second(self) -> float:
        """Transitions followed in a second of search."""
        return self.transitions / self.seconds

    @property
    def warm_transitions_per_second(self) -> float | None:
        """Transitions per second of the search that was not spent in Python: the speed of warm tables."""
        return None if self.python_seconds is None else self.transitions / (self.seconds - self.python_seconds)

    @property
    def steps_per_thousand(self) -> float | None:
        """Calls of a step function per thousand transitions."""
        return None if self.python_steps is None else 1000 * self.python_steps / self.transitions

    @property
    def bytes_per_state(self) -> float:
        """The growth of the resident size from the baseline to the peak, divided by the number of states."""
        return (self.peak_bytes - self.baseline_bytes) / self.states


@dataclass(frozen=True)
class Missed:
    """A measurement without a figure: the name it is registered with, and the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"not measured: {self.reason}"


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
