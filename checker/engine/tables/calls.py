"""The calls of a model's functions: they are counted, and often made twice.

A function of a model must give equal answers to equal arguments, since each is called once for each distinct argument.
The first calls of every function, and some later ones, are therefore repeated and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checker.engine.contract import call, step
from checker.engine.model import Actor, Model, ModelError, Outcome
from checker.engine.result import VALUE

VERIFIED_CALLS = 500  # the first calls of each function are made twice ...
VERIFIED_EVERY = 32  # ... and later each call with this number


class ModelCalls:
    """Calls the functions of a model.

    `calls` counts the calls of all functions, and `steps` those of step functions among them. `work` is the work of the
    calls, in transitions.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls, self.steps, self.work = 0, 0, 0
        self._called: dict[str, int] = {}

    def call(self, who: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer of a function. Raises ModelError if it fails, or gives another answer the second time."""
        answer = call(who, function, *arguments)
        if self._counted(who, len(arguments)):
            _compare(who, answer, call(who, function, *arguments), arguments)
        return answer

    def step(self, who: str, actor: Actor, values: tuple[Any, ...], operation: Any) -> Outcome | None:
        """The outcome of an operation; None if it is not possible. Raises ModelError as `call` does."""
        self.steps += 1
        outcome = step(self.model, actor, values, operation)
        if self._counted(who, 2):
            _compare(who, outcome, step(self.model, actor, values, operation), (values, operation))
        return outcome

    def _counted(self, who: str, arguments: int) -> bool:
        """Count a call of a function; whether it is called a second time, to compare the answers."""
        self.calls += 1
        called = self._called[who] = self._called.get(who, 0) + 1
        is_verified = called <= VERIFIED_CALLS or called % VERIFIED_EVERY == 0
        self.work += VALUE * arguments * (2 if is_verified else 1)
        return is_verified


def _compare(who: str, answer: Any, again: Any, arguments: tuple[Any, ...]) -> None:
    if again != answer:
        raise ModelError(
            f"{who} is not deterministic: of {arguments!r} it made first {answer!r}, then {again!r}. "
            "The likely cause is a clock, a random number, a counter or other state outside its arguments, "
            "or an argument that was changed in place."
        )
