"""Fingerprints: equal in every process and for every order of discovery, and different for every seed.

The expected counts come from the plain engine, which has no fingerprints.
"""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from checker.engine import Actor, Column, Limits, Model, ModelError, Move, Outcome, Rule, Send, plain, search
from checker.engine.model import Read
from checker.engine.result import disagreements
from checker.engine.tables import Tables, interner
from checker.models.small_election import election

NAMED = Model("named", (Column("a", 0), Column("b", 0)), (), ())
SHOW = """
from tests.unit.checker.engine.test_engine_fingerprints import NAMED, numbers
print(numbers(NAMED, [frozenset({"x", "y", "z"}), ("x", 1), b"x", 1.5, None, True], 1))
"""


def numbers(model: Model, values: list[Any], seed: int) -> list[int]:
    """The fingerprints of rows with one value in both columns."""
    tables = Tables(model, seed)
    return tables.fingerprints(np.array([[tables.cell(c, value, "") for c in range(2)] for value in values])).tolist()


def test_they_are_the_same_in_every_process() -> None:
    """Python's own hashes of strings, and so the order of sets, differ between processes."""
    shown = {
        subprocess.run(
            [sys.executable, "-c", SHOW], env={**os.environ, "PYTHONHASHSEED": str(k)}, text=True, check=True,
            stdout=subprocess.PIPE,
        ).stdout
        for k in (1, 2)
    }  # fmt: skip
    assert len(shown) == 1


def test_they_do_not_depend_on_the_order_of_discovery() -> None:
    values = [3, "x", ("x", 1), frozenset({1, 2})]
    assert numbers(NAMED, values, 1) == numbers(NAMED, values[::-1], 1)[::-1]


def test_columns_and_seeds_change_them() -> None:
    """Equal values in two columns would otherwise cancel each other."""
    values = [3, "x", ("x", 1)]
    found = numbers(NAMED, values, 1) + numbers(NAMED, values, 2)
    assert len({*found}) == len(found)
    assert 0 not in found


def test_two_seeds_give_equal_figures() -> None:
    model = election(3).with_properties([])
    one, two = (search.explore(model, seed=seed) for seed in (1, 2))
    assert (one.seed, two.seed) == (1, 2)
    assert disagreements(one, two) == []
    assert one.coverage == two.coverage


def test_two_values_of_a_column_with_one_number_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Constant:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def digest(self) -> bytes:
            return bytes(8)

    monkeypatch.setattr(interner, "blake2b", Constant)
    with pytest.raises(ModelError, match=r"column 'a' have one number for fingerprints: 1 and 2; use another seed"):
        numbers(NAMED, [1, 2], 1)


def test_values_without_a_text_of_their_own_are_told_apart() -> None:
    """An object that is neither a struct nor data has only its type in its text."""

    class Opaque:
        def __init__(self, number: int) -> None:
            self.number = number

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Opaque) and other.number == self.number

        def __hash__(self) -> int:
            return self.number

    model = Model(
        "opaque",
        (Column("n", Opaque(0)),),
        (Actor("n", ("n",), lambda values, by: Outcome((Opaque(min(values[0].number + by, 9)),))),),
        (Rule("add", (Read("n"),), lambda _: [Move("Add", (by,), (Send("n", by),)) for by in (1, 2)]),),
    )
    assert disagreements(plain.explore(model, Limits()), search.explore(model, Limits())) == []
