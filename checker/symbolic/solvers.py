"""The solvers that decide whether a claim holds: z3, and cvc5 as a second opinion.

Rules this module keeps:

- Both read the same text, which z3 writes (`smt_lib`).
- A claim is **proved** if its negation is unsatisfiable. A time-out or an "unknown" is not a proof: it is `OPEN`.
- A solver is loaded when it is first asked.

Source: the SMT-LIB Standard, version 2.6.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import z3

MILLISECONDS = 1000
ATTEMPTS = 4
"""The searches for one answer, each with another seed. An unlucky search may follow a chain of instances for ever."""


class Solver(Enum):
    """A solver; the value is its name, and that of its module."""

    Z3 = "z3"
    CVC5 = "cvc5"

    def load(self) -> Any:
        """Its module. Raises ModuleNotFoundError."""
        return importlib.import_module(self.value)


class ProofFinding(Enum):
    """The answer of a solver to a claim."""

    PROVED = "proved"
    FAILED = "failed"
    OPEN = "open"


class Opinion(NamedTuple):
    """The answer of a solver, and the seconds that it took."""

    finding: ProofFinding
    seconds: float


_FINDINGS = {"unsat": ProofFinding.PROVED, "sat": ProofFinding.FAILED}


def smt_lib(hypotheses: Iterable[z3.BoolRef], goal: z3.BoolRef) -> str:
    """An SMT-LIB script that asks whether a goal follows from hypotheses. The answer "unsat" means that it does."""
    z3 = Solver.Z3.load()
    solver = z3.Solver()
    solver.add(*hypotheses, z3.Not(goal))
    return "(set-logic ALL)\n" + str(solver.to_smt2())


def ask(solver: Solver, script: str, *, seed: int = 0, seconds: float = 60) -> Opinion:
    """The opinion of a solver on a script of `smt_lib`, after at most the given time.

    Raises ModuleNotFoundError if the solver is not installed.
    """
    search = _z3 if solver is Solver.Z3 else _cvc5
    began = time.monotonic()
    finding = ProofFinding.OPEN
    for attempt in range(ATTEMPTS):
        finding = _FINDINGS.get(search(script, seed + attempt, int(seconds * MILLISECONDS / ATTEMPTS)), finding)
        if finding is not ProofFinding.OPEN:
            break
    return Opinion(finding, time.monotonic() - began)


def _z3(script: str, seed: int, milliseconds: int) -> str:
    solver = Solver.Z3.load().Solver()
    solver.set("timeout", milliseconds, "random_seed", seed)
    solver.from_string(script)
    return str(solver.check())


def _cvc5(script: str, seed: int, milliseconds: int) -> str:
    cvc5 = Solver.CVC5.load()
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("tlimit-per", str(milliseconds))
    solver.setOption("seed", str(seed))
    return answer_of_cvc5(solver, script)


def answer_of_cvc5(solver: Any, script: str) -> str:
    """What a solver of cvc5, whose options are set, answers to a script."""
    cvc5 = Solver.CVC5.load()
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script, "condition")
    answer = ""
    while not (command := parser.nextCommand()).isNull():
        answer += str(command.invoke(solver, parser.getSymbolManager()))
    return answer.strip()
