"""The candidates of a validation: the states that a system may be in, as far as its observations tell.

An observation does not show every step, so there are several candidates. Hidden steps lead from one to others; an
observation keeps those that fit. One that no candidate fits is a finding.

- `reached` takes the hidden steps, from the candidates for a log, of a twin, and of a server in a recording.
- `fitting` keeps the candidates that fit, or gives the reasons of all.

A recording has no set for the whole ensemble but one for each server, and its hidden steps are chosen by the packet
that must come next (`checker.validate.recording.worlds`); so it takes most of them one by one.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

State = TypeVar("State", bound=Hashable)
Possible = TypeVar("Possible")


def reached(
    starts: Iterable[State], steps: Callable[[State], Iterable[State]], rank: Callable[[State], Any] = lambda _: 0
) -> Iterator[tuple[State, list[State]]]:
    """Every state that steps lead to, once, with the states after it.

    The state with the lowest rank comes first, then the one that was found first: without a rank it is breadth-first.
    A state is ranked when it is found.
    """
    known: set[State] = set()
    queue: list[tuple[Any, int, State]] = []
    number = count()

    def add(states: Iterable[State]) -> None:
        for state in states:
            if state not in known:
                known.add(state)
                heappush(queue, (rank(state), next(number), state))

    add(starts)
    while queue:
        _, _, state = heappop(queue)
        after = list(steps(state))
        yield state, after
        add(after)


class Unfit(Exception):  # noqa: N818 - it is a finding, and not an error of the program
    """An observation does not fit; the message names the allowed one."""


def fitting(results: Iterable[Possible | str]) -> list[Possible]:
    """The states that fit an observation, without the reasons of those that do not. Raises Unfit if no state fits."""
    outcomes = list(results)
    states = [outcome for outcome in outcomes if not isinstance(outcome, str)]
    if not states:
        raise Unfit("; or ".join(dict.fromkeys(outcome for outcome in outcomes if isinstance(outcome, str))))
    return states
