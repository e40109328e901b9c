"""The node runs what the checker explores: the lines of `spec` that serving nodes execute, and those of explorations.

The nodes are those of the simulation: ensembles of real nodes with clients, faults and changes of the members. The
explorations are exhaustive; those of ensembles have the rules of a node (`refimpl.node.ZAB`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from msgspec.structs import replace

from checker.engine import Exploration, Stop
from checker.engine.search import explore
from checker.models.ensemble import Budgets, File, Grain, Member, PlannedReconfig, Prologue, Setup, ensemble
from checker.scenario import bundled, ensemble_setup, load
from refimpl.node import ZAB
from simulation.run import plan_of
from simulation.swarm import run_plan
from spec.quorum import MembershipChange, View, majority_view
from spec.zab.state import ZabRules
from tests.support.spec_lines import Line, executed

NODES = ((101, 3, 0), (201, 5, 0), (202, 5, 1), (203, 3, 2), (301, 4, 1), (303, 3, 0))
"""Seeds of the simulation, with their voters and observers."""
SCENARIOS = (
    "zab-effects-fine", "zab-syncs", "one-observer-promoted-keeps-transactions", "stale-volume",
    "r4-observer-fine", "r10-reconfig-enabled", "r11-3-servers-fine",
    "r12-answers", "r12-answers-about-kinds", "r12-answers-about-acls", "r12-ephemerals", "r13-answers-of-a-multi",
    "r14-sessions",
)  # fmt: skip
TIME = "it measures time; in the checker the end of a time is an event that is always possible"
TEXT = "it reads text, and the checker reads its scenarios by it before it explores"
MANY = "it repeats the step of one event; tests/properties/test_step_all.py compares both"
CONTENT = "it keeps what clients see of znodes; tests/conformance compares it with real servers"
SEVERAL = "a client of the model has one request at a time; tests/conformance compares it with real servers"
NOT_EXPLORED = {
    "config/": TEXT,
    "quorum/view.py: change_of": "it takes the change of a tree from a reconfiguration; the checker has no such tree",
    "sequence.py: ": "a tuple for long histories; test_node_txn_buffer.py compares it with a tuple",
    "server.py: step_all": MANY,
    "server.py: _served": MANY,
    "server.py: _give_up": "a node asks whether a learner may leave; in the checker the event is not offered",
    "election/channel.py: deliver": "a node asks for a message; in the checker there is one in each delivery",
    "election/state.py: next_notification_timeout": TIME,
    "zab/timeouts.py: ": TIME,
    "zab/leader.py: is_supported": TIME,
    "zab/reconfiguration.py: first_version": "the files of the checker have versions",
    "zab/learner_sync.py: _not_in_snapshot": "the SNAP of a node has a tree in place of transactions",
    "service/expiry.py: ": TIME,
    "service/sessions.py: ": TIME,
    "service/handshake.py: ": TIME,
    "service/reconfig_request.py: ": TEXT,
    "service/connection.py: ": SEVERAL,
    "tree/overlay.py: ": SEVERAL,
    "tree/watches.py: ": CONTENT,
    "tree/accounting.py: ": CONTENT,
    "tree/apply.py: _reconfig": CONTENT,
    "tree/data.py: as_long": CONTENT,
    "tree/prepare.py: fitted": CONTENT,
    "tree/store.py: configured": CONTENT,
}
"""Functions of which serving nodes execute lines that no exploration executes, by the start of their name."""


@cache
def lines_of_nodes() -> frozenset[Line]:
    """The lines that nodes of simulated ensembles execute."""
    lines: set[Line] = set()
    for seed, voters, observers in NODES:
        with executed() as of_run:
            run = run_plan(plan_of(seed, voters, observers, 40.0))
        assert not run.failures
        assert sum(run.operations.values()) > 0
        lines |= of_run
    return frozenset(lines)


def explorations() -> Iterator[Exploration]:
    """Exhaustive explorations: shipped scenarios, and three ensembles that no scenario has."""
    paths = {path.stem: path for path in bundled()}
    for name in SCENARIOS:
        job = load(paths[name])
        yield explore(job.model, job.limits)
    # A server joins while others write, so that commits wait for UPTODATE.
    three = majority_view([1, 2, 3])
    budgets = Budgets(elections=1, writes=2, pings=1, disconnects=1)
    joining = Setup(
        members(three, late=3), Grain.ORACLE, (Prologue((1, 2)),), budgets=budgets, zab=ZAB, discovery_in_one_step=True
    )
    yield explore(ensemble("joining", joining, []))
    # A write waits behind a reconfiguration.
    running = members(replace(three, version=1))
    leaves = PlannedReconfig(MembershipChange(leaving=frozenset({1})))
    budgets = Budgets(elections=1, writes=1)
    shrinking = Setup(
        running, Grain.ORACLE, (Prologue((1, 2, 3)),), (leaves,), budgets, zab=ZAB, discovery_in_one_step=True
    )
    yield explore(ensemble("shrinking", shrinking, []))
    # A later version of the same members is adopted from a notification.
    later = tuple(Member(sid, File("later.cfg", replace(three, version=2)), late=sid == 3) for sid in (2, 3))
    gossip = Setup((Member(1, File("zoo.cfg", replace(three, version=1))), *later), Grain.FINE, round_limit=1)
    yield explore(ensemble("gossip", gossip, []))


def members(view: View, late: int = 0) -> tuple[Member, ...]:
    return tuple(Member(sid, File("zoo.cfg", view), late=sid == late) for sid in sorted(view.members))


@pytest.fixture(scope="module")
def unexplored() -> frozenset[Line]:
    """The lines that nodes execute and explorations do not."""
    zab_of = ensemble_setup.zab_of

    def with_rules_of_a_node(*arguments: object) -> ZabRules | None:
        rules = zab_of(*arguments)  # type: ignore[arg-type]
        return None if rules is None else replace(ZAB, variants=rules.variants)

    lines: set[Line] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble_setup, "zab_of", with_rules_of_a_node)
        with executed() as lines:
            for exploration in explorations():
                assert exploration.stop is Stop.EXHAUSTED, exploration.model.name
    return lines_of_nodes() - lines


def test_every_line_that_a_serving_node_executes_is_explored(unexplored: frozenset[Line]) -> None:
    others = {line for line in unexplored if not line[0].startswith(tuple(NOT_EXPLORED))}
    assert not others, "\n".join(f"{function}, line {number}" for function, number in sorted(others))


def test_every_exception_is_needed(unexplored: frozenset[Line]) -> None:
    functions = {function for function, _ in unexplored}
    assert [start for start in NOT_EXPLORED if not any(name.startswith(start) for name in functions)] == []


@pytest.mark.parametrize(
    "function",
    [
        "server.py: _adopted",
        "zab/leader_broadcast.py: ServingLeader.propose",
        "zab/leader_broadcast.py: ServingLeader._commit",
        "zab/learner_broadcast.py: ServingLearner._commit",
        "zab/learner_sync.py: newleader",
        "election/fast_leader_election.py: _receive",
    ],
)
def test_nodes_run_the_functions_of_the_protocol(function: str) -> None:
    """The comparison is not empty: the protocol ran in the nodes."""
    assert function in {name for name, _ in lines_of_nodes()}
