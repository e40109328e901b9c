"""The refinement on shipped counterexamples that need no defect: which condition or premise each run breaks, as a page.

The run is the one that a scenario is shipped for: the shortest that violates its property. Its moves are carried out
again with the refinement. Where no condition of an action fails, the premise on quorums is evaluated on the actions of
the whole run, since no server remembers the quorums of reigns that are over. REWRITE_GOLDEN=1 rewrites the page; read
the diff before you commit it.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checker.engine import Actor, Discovery, Outcome
from checker.engine.search import explore
from checker.engine.semantics import fire
from checker.engine.steps import STEPS
from checker.models.ensemble.setup import HISTORY
from checker.refinement.abstract_steps import REFINEMENT, AbstractSteps, Name
from checker.scenario import bundled, from_text, load

PAGE = Path(__file__).parents[2] / "docs" / "reference-refinement-counterexamples.md"
SCENARIOS = {path.stem: path for path in sorted(bundled())}
JUDGED = (
    "r10-zab-leader-last-loses-a-write",
    "r10-zab-both-commit",
    "r10-zab-leader-last-partition",
    "r10-zab-healing",
    "parallel-three-to-five",
    "r4-observer-promoted-last",
    "one-to-three-loses-all",
    "three-to-one-loses-a-write",
    "one-to-three-both-serve",
    "address-changes",
    "leader-restarts-while-scaling",
    "five-to-three-no-wait-two-leaders",
    "five-to-three-no-wait-loses-a-write",
)
SAFE = {
    "one-to-three-both-serve": "Server 1 serves standalone, and abstract Zab has no standalone servers.",
    "address-changes": "The run never settles, and loses nothing: abstract Zab has no liveness.",
    "leader-restarts-while-scaling": "The run never settles, and loses nothing: abstract Zab has no liveness.",
}
"""The counterexamples that break neither a condition nor the premise, with the reason."""


class JudgedRun(NamedTuple):
    """A shipped run, the steps of abstract Zab in it, and the first broken condition with the number of its step."""

    found: Discovery
    steps: tuple[tuple[int, AbstractSteps], ...]
    broken: tuple[int, str] | None


@cache
def judged(name: str) -> JudgedRun:
    """Carry out the moves of the shortest run of a scenario with the refinement."""
    path = SCENARIOS[name]
    job = load(path)
    (found,) = explore(job.model, job.limits).violations
    text = re.sub(r"^(always|violations|expect|recoverable|eventually):.*\n(?: +.*\n)*", "",
                  path.read_text("utf-8"), flags=re.MULTILINE)  # fmt: skip
    text += f"\nalways: [{REFINEMENT}]\nexpect: passed\n"
    model = from_text(text, lambda file: (path.parent / file).read_text("utf-8")).model
    noted: list[AbstractSteps] = []

    def recording(actor: Actor) -> Actor:
        def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
            if isinstance(operation, AbstractSteps):
                noted.append(operation)
            return actor.step(values, operation)

        return replace(actor, step=step)

    model = replace(model, actors=tuple(recording(a) if a.name == HISTORY else a for a in model.actors))
    row, steps, broken = model.initial(), [], None
    for number, each in enumerate(found.path[1:], start=1):
        noted.clear()
        assert each.move is not None
        after = fire(model, row, each.move)
        assert after is not None
        row = after
        steps += [(number, step) for step in noted]
        findings = row[model.index[STEPS]]
        if broken is None and findings:
            broken = number, findings[0][1].clause
    return JudgedRun(found, tuple(steps), broken)


class UsedQuorum(NamedTuple):
    """A quorum that a reign uses in a step, to establish its epoch or to commit."""

    step: int
    epoch: int
    commits: bool
    servers: frozenset[int]


def used_quorums(run: JudgedRun) -> Iterator[UsedQuorum]:
    """Yield the quorums that the reigns of a run use; a reign that serves commits its initial transactions, if any."""
    initial = {}
    for number, step in run.steps:
        for call in step.calls:
            if call.name is Name.ESTABLISH:
                initial[call.reign] = call.txns
            commits = call.name is Name.COMMIT or (call.name is Name.SERVE and bool(initial.get(call.reign)))
            if commits or call.name is Name.ESTABLISH:
                yield UsedQuorum(number, call.reign[0], commits, call.quorum)


def broken_premise(run: JudgedRun) -> tuple[int, str] | None:
    """Return the first step after which the premise `used` does not hold, with the quorums that do not meet."""
    for one, other in combinations(used_quorums(run), 2):
        first, last = sorted((one, other), key=lambda used: used.epoch)
        later = first.commits and not last.commits and first.epoch < last.epoch
        twice = not first.commits and not last.commits and first.epoch == last.epoch
        if (later or twice) and not first.servers & last.servers:
            verb = "commits in" if first.commits else "establishes"
            sets = [", ".join(map(str, sorted(each.servers))) for each in (first, last)]
            return other.step, (
                f"the premise: {{{sets[0]}}}, which {verb} epoch {first.epoch}, meets {{{sets[1]}}}, which establishes "
                f"epoch {last.epoch}"
            )
    return None


@pytest.mark.parametrize("name", [name for name in JUDGED if name not in SAFE])
def test_a_run_that_loses_data_breaks_a_condition_or_the_premise_not_later_than_its_property(name: str) -> None:
    run = judged(name)
    broken = run.broken or broken_premise(run)
    assert broken is not None
    assert broken[0] <= len(run.found.path) - 1


@pytest.mark.parametrize("name", sorted(SAFE))
def test_a_run_that_loses_nothing_of_abstract_zab_breaks_neither(name: str) -> None:
    run = judged(name)
    assert run.broken is None
    assert broken_premise(run) is None


@pytest.mark.parametrize("name", [name for name in JUDGED if name.startswith("r10") or "three-to-five" in name])
def test_a_configuration_mismatch_breaks_the_premise_and_no_condition_of_an_action(name: str) -> None:
    run = judged(name)
    assert broken_premise(run) is not None
    assert run.broken is None or run.broken[1].startswith("the premise: ")


def test_the_page_in_the_manual_is_what_the_runs_break() -> None:
    page = "\n".join(_page()) + "\n"
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def _page() -> list[str]:
    lines = [*_HEAD, "", "| scenario | property, and length of the run | condition or premise | step |",
             "| --- | --- | --- | --- |"]  # fmt: skip
    for name in JUDGED:
        run = judged(name)
        step, clause = broken_premise(run) or run.broken or ("", "none")
        if run.broken is not None and not run.broken[1].startswith("the premise"):
            step, clause = run.broken
        link = f"[{name}](../{SCENARIOS[name].relative_to(PAGE.parents[1])})"
        lines.append(f"| {link} | {run.found.prop.name} ({len(run.found.path) - 1}) | {clause} | {step} |")
    lines += ["", "Three runs break neither:", "", *(f"- `{name}`. {reason}" for name, reason in SAFE.items())]
    return lines


_HEAD = """\
# Counterexamples and the conditions of abstract Zab

[Another page](reference-refinement.md) has the variants. This one has the other shipped counterexamples of whole
ensembles (`protocol: zab`): files that differ, observers, standalone servers, and runs that do not settle. The servers
have no defect. The moves of each run are carried out again with [the
refinement](explanation-proofs-of-zab.md#the-refinement). The table has the first condition that fails.

Servers with different files may break the *premise* on quorums alone. Then each action is allowed, and the theorems do
not apply. The premise is evaluated on the quorums that the run uses: a quorum that commits must meet each that
establishes a later epoch, and two quorums that establish one epoch must meet. A standalone server is no server of
abstract Zab: in the scenarios `one-to-three` and `three-to-one` a failed condition says that its step has no
counterpart, and not more. The test
`tests/quality/test_refinement_counterexamples.py` writes this page.
""".splitlines()
