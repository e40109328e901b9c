"""`python -m tests.reality.interrupted`: a plan that is called safe goes on as planned after each of its steps.

Hypothesis draws pairs of states: files with other members, roles, addresses, weights and groups, or a change of
`tests.reality.changes`. After each step of the first order the answer with `--now` must be safe, with the exit code 0
and the remaining steps in their order. Orders for other leaders are compared where they pass through the same states.
All states are read from files. An answer that disagrees with little work is asked for again with more, since most of
the work is spent on the way back. Exit codes: 0 no disagreement, 1 a disagreement.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from checker.command import command_parser
from checker.command_table import ENTRIES
from checker.rollout import Engine, Plan, SafetyVerdict, plan
from checker.rollout.orders import OrderError
from checker.rollout.route_verdict import Order, PlanRoute
from checker.rollout_command import request_of
from spec.config import ConfigError
from spec.quorum import Sid
from spec.text import between
from tests.reality.changes import change_of
from tests.reality.states import State, filled, write_folder
from tests.support.rollout_pairs import Cfg, pairs, write_servers

ENGINE, LITTLE, MORE = Engine(), "0.5s", "20s"
CHANGES = st.integers(1, 100_000).map(lambda number: change_of(1, number))
DRAWN: st.SearchStrategy[tuple[str, Cfg | State, Cfg | State]] = st.one_of(
    pairs().map(lambda pair: ("a pair of files", *pair)),
    CHANGES.map(lambda change: (change.kind, change.old, change.new)),
)
"""The kind of a change, and the states before and after it."""


class Compared(NamedTuple):
    """A kind of changes, the verdict on one of them, the number of its compared steps, and what disagrees."""

    kind: str
    verdict: str
    steps: int = 0
    disagreements: tuple[str, ...] = ()


def compared(count: int, number: int, minutes: float = 60.0, budget: str = MORE) -> list[Compared]:
    """Compare this number of pairs of three to five servers; refused inputs and equal states do not count.

    The budget is that of the whole plan.
    """
    results, seen, began = list[Compared](), set[str](), time.monotonic()
    checks = settings(suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None, deadline=None)

    @seed(number)
    @settings(checks, max_examples=20 * count)
    @given(DRAWN)
    def draw(change: tuple[str, Cfg | State, Cfg | State]) -> None:
        kind, *states = change
        size = max(len(state.members if isinstance(state, Cfg) else state.places) for state in states)
        ended = len(results) == count or time.monotonic() > began + 60 * minutes
        if ended or states[0] == states[1] or not 3 <= size <= 5 or str(change) in seen:
            return
        seen.add(str(change))
        with tempfile.TemporaryDirectory(prefix="quorate-now-") as name:
            for state, folder in zip(states, (Path(name, "old"), Path(name, "new")), strict=True):
                if isinstance(state, Cfg):
                    state.write(folder)
                else:
                    texts = state.texts().items()
                    write_folder(folder, {sid: filled(text, Path("/srv"), "127.64.0") for sid, text in texts})
            try:
                results.append(_compared(kind, Path(name), budget))
            except (ConfigError, OrderError):
                return
        head = f"{len(results)} of {count}: {kind}: {results[-1].verdict}, {results[-1].steps} steps"
        print(f"{head} ({time.monotonic() - began:.0f} s)", *results[-1].disagreements, sep="\n  ", flush=True)

    draw()
    return results


def _compared(kind: str, home: Path, budget: str) -> Compared:
    made = _planned(budget, old=home / "old", new=home / "new")
    if made.reconfig_route is not None or made.outcome is not SafetyVerdict.SAFE:
        return Compared(kind, f"{made.verdict.value}{' by reconfig' if made.reconfig_route else ''}")
    answers = [text for place, route in enumerate(made.advised) for text in _rests(route, home / f"stage-{place + 1}")]
    return Compared(kind, "safe in stages" if made.stages else "safe", len(answers), tuple(filter(None, answers)))


def _rests(route: PlanRoute, home: Path) -> list[str]:
    """What disagrees after each compared step of a stage; nothing is an empty text."""
    before, after = route.stage.old.servers, route.stage.new.servers
    rests, answers = dict[frozenset[Sid], Plan](), list[str]()
    write_servers(home / "old", before)
    write_servers(home / "new", after)
    for order, done in ((option, done + 1) for option in route.orders for done in range(len(option.steps))):
        applied = frozenset(step.sid for step in order.steps[:done])
        folders = {"old": home / "old", "new": home / "new", "now": home / "-".join(map(str, sorted(applied)))}
        if applied not in rests and order is route.orders[0]:
            write_servers(folders["now"], {sid: files for sid, files in before.items() if sid not in applied})
            write_servers(folders["now"], {sid: after[sid] for sid in applied & after.keys()})
            rests[applied] = _planned(LITTLE, **folders)
        if applied in rests:
            if _disagreement(rests[applied], order, done):
                rests[applied] = _planned(MORE, **folders)
            answer = _disagreement(rests[applied], order, done)
            answers.append(answer and f"{home.name}, {route.stage.title}, leader {order.leader}: {answer}")
    return answers


def _disagreement(rest: Plan, order: Order, done: int) -> str:
    """The answer after some steps of an order, unless it is safe and goes on with the others."""
    orders = {other.leader: other.steps for other in rest.direct.orders}
    possible = [orders[order.leader]] if order.leader in orders else [*orders.values()] or [()]
    if rest.outcome is SafetyVerdict.SAFE and not rest.exit_code and order.steps[done:] in possible:
        return ""
    shown = " or ".join(", ".join(map(str, steps)) for steps in possible) or "nothing"
    planned = ", ".join(map(str, order.steps))
    return f"{planned}; --now after {done}: {rest.outcome.value} ({rest.exit_code.value}): {shown}"


def _planned(budget: str, **folders: Path) -> Plan:
    names = {"old": "--from", "new": "--to", "now": "--now"}
    words = [word for name, folder in folders.items() for word in (names[name], str(folder))]
    request = request_of(command_parser(ENTRIES["rollout"]).parse_args([*words, "--budget", budget]))
    if request.now is not None:  # the servers are only files here: as if each of them served
        request = replace(request, now=replace(request.now, unseen=frozenset()))
    return plan(request, ENGINE.run)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reality.interrupted", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=between(0), default=1, metavar="S", help="of the pairs (default: 1)")
    parser.add_argument("--pairs", type=between(1), default=200, metavar="N", help="the number of pairs (200)")
    parser.add_argument("--minutes", type=between(1), default=45, metavar="N", help="no pair begins later (45)")
    options = parser.parse_args(arguments)
    rows: dict[str, Counter[str]] = {}
    for kind, verdict, steps, wrong in compared(options.pairs, options.seed, options.minutes):
        for name in (kind, "all"):
            rows.setdefault(name, Counter()).update(
                {"pairs": 1, verdict: 1, "steps": steps, "disagreements": len(wrong)}
            )
    heads = list(dict.fromkeys(("pairs", "steps", "disagreements", *(head for row in rows.values() for head in row))))
    print(f"\n| | {' | '.join(heads)} |\n| --- |{' ---: |' * len(heads)}")
    for kind, row in sorted(rows.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"| {kind} | {' | '.join(str(row[head] or '') for head in heads)} |")
    return 1 if rows and rows["all"]["disagreements"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
