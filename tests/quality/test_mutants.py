"""The worth of a property is the errors it catches: for each one, a protocol with one error, and the run that shows it.

Each mutant changes one expression of `spec`. Its scenario is the smallest one where the change matters; the unchanged
protocol passes the same scenario. Where the least depth is given, a comment lists the steps.
"""

import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from checker.engine import Exploration, Kind, Stop, plain
from checker.engine.result import disagreements
from checker.engine.search import explore
from checker.properties import ENSEMBLE_PROPERTIES, ZAB
from checker.properties.reconfiguration import RECONFIGURED
from checker.scenario import from_text
from spec.election import fast_leader_election, state, vote
from spec.quorum import systems


def zoo_cfg(*voters: int) -> str:
    return "initLimit=5\nsyncLimit=2\n" + "".join(f"server.{sid}=zoo{sid}:2888:3888\n" for sid in voters)


FILES = {f"zoo-{servers}.cfg": zoo_cfg(*range(1, servers + 1)) for servers in (1, 2, 3, 4, 5)}


class Mutant(NamedTuple):
    """One expression of one function of `spec`, and its replacement."""

    function: Callable[..., Any]
    right: str
    wrong: str


class Case(NamedTuple):
    """A property that catches a mutant in a scenario. `depth` is the least depth; None if it was not counted."""

    caught_by: str
    mutant: Mutant
    scenario: str
    depth: int | None


A_HALF_IS_ENOUGH = Mutant(
    systems.Majority.quorum_size.fget, "len(self.members) // 2 + 1", "(len(self.members) + 1) // 2"
)
STRANGERS_COUNT = Mutant(fast_leader_election._receive, "if not peer.is_voter(source):", "if False:")
ANYBODY_MAY_LEAD = Mutant(
    fast_leader_election._take_from_queue, "if not peer.is_voter(heard.vote.leader):", "if False:"
)
OLD_VOTES_STAY = Mutant(state.put, "pair[0] != sid", "pair != (sid, value)")
DATA_DO_NOT_MATTER = Mutant(
    vote.is_better,
    "(new.peer_epoch, new.zxid, new.leader) > (current.peer_epoch, current.zxid, current.leader)",
    "new.leader > current.leader",
)
LEADERS_NEED_NOT_SAY_SO = Mutant(fast_leader_election.check_leader, "return leading", "return True")

BOOT_OF_TWO = "file: zoo-2.cfg\nservers: [1, 2]\nrounds: 1\n"
# The file of server 1 does not contain server 3.
ONE_FILE_IS_OLD = "file: zoo-3.cfg\nservers: {1: {file: zoo-2.cfg}, 2: {}, 3: {}}\nrounds: 1\n"
THREE_HAS_MISSED_A_WRITE = "file: zoo-3.cfg\nservers: {1: {zxid: 2}, 2: {zxid: 2}, 3: {zxid: 1}}\nrounds: 1\n"
CASES = {
    # Each server is half of two: both decide without a message.
    "a half is enough, of two": Case("OneLeader", A_HALF_IS_ENOUGH, BOOT_OF_TWO + "always: [OneLeader]\n", 2),
    # In a partition of two and two, both sides elect.
    "a half is enough, of four": Case(
        "OneLeader",
        A_HALF_IS_ENOUGH,
        "file: zoo-4.cfg\nservers: [1, 2, 3, 4]\ngrain: oracle\nfaults: {partitions: 1}\nalways: [OneLeader]\n",
        None,
    ),
    # 1 runs standalone, and 2 is half of two.
    "a half is enough, beside a standalone server": Case(
        "StandaloneServesAlone",
        A_HALF_IS_ENOUGH,
        "servers: {1: {file: zoo-1.cfg}, 2: {file: zoo-2.cfg}}\nrounds: 1\nalways: [StandaloneServesAlone]\n",
        1,
    ),
    # 3 hears the better vote of 2; then 1 hears 3: its first vote (for 3, which 1 does not know), and the one for 2.
    "strangers count": Case(
        "OnlyVotersCounted",
        STRANGERS_COUNT,
        ONE_FILE_IS_OLD.replace("2: {}", "2: {zxid: 1}") + "always: [OnlyVotersCounted]\n",
        3,
    ),
    # 2 hears 3; 1 hears both votes of 2, the second one for 3; 1 decides with 2 of its 2 voters.
    "anybody may lead": Case("LeaderIsAVoter", ANYBODY_MAY_LEAD, ONE_FILE_IS_OLD + "always: [LeaderIsAVoter]\n", 4),
    # 1 hears 2 and adopts its vote: its own old vote stays next to the new one.
    "old votes stay": Case("OneVotePerSender", OLD_VOTES_STAY, BOOT_OF_TWO + "always: [OneVotePerSender]\n", 1),
    # 1 hears 3 and decides; 3 hears the second vote that 1 sent it, and decides.
    "data do not matter": Case(
        "NeverLeads(3)", DATA_DO_NOT_MATTER, THREE_HAS_MISSED_A_WRITE + "always: [{NeverLeads: 3}]\n", 5
    ),
    # 1 hears 3 and decides.
    "data do not matter to a follower": Case(
        "NeverStands(1 FOLLOWING 3)",
        DATA_DO_NOT_MATTER,
        THREE_HAS_MISSED_A_WRITE + "always: [{NeverStands: {1: FOLLOWING 3}}]\n",
        2,
    ),
    # 4 and the leader 5 have crashed, and 1, 2 and 3 have not noticed (with one round only, they never do). 4 comes
    # back; each of the three hears it, and 4 hears each of them say that it follows 5. Old votes are not sent again
    # here: those of 1, 2 and 3 alone would make 4 follow 5, as they do in the real system.
    "a leader need not say so": Case(
        "NeverStands(4 FOLLOWING 5, 5 down)",
        LEADERS_NEED_NOT_SAY_SO,
        "file: zoo-5.cfg\nservers: [1, 2, 3, 4, 5]\nhistory: [{start: [1, 2, 3, 4, 5]}]\nrounds: 1\n"
        "faults: {crashes: 2, restarts: 1}\nopening: [{crash: 4}, {crash: 5}]\nchannel: {resend: false}\n"
        "always: [{NeverStands: {4: FOLLOWING 5, 5: down}}]\n",
        2 + 1 + 3 + 3,
    ),
}


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mutant], None]:
    """Return a function that replaces the mutated function wherever `spec` refers to it."""

    def put_in_place(mutant: Mutant) -> None:
        function, name = mutant.function, mutant.function.__name__
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(mutant.right) == 1, f"{name} does not have {mutant.right!r} once: the mutant is out of date"
        made: dict[str, Any] = {}
        exec(compile(source.replace(mutant.right, mutant.wrong), name, "exec"), function.__globals__, made)
        if isinstance(made[name], property):
            monkeypatch.setattr(systems.Majority, name, made[name])
            return
        for module in [each for key, each in sys.modules.items() if key.partition(".")[0] == "spec"]:
            if getattr(module, name, None) is function:
                monkeypatch.setattr(module, name, made[name])

    return put_in_place


def explored(text: str) -> Exploration:
    job = from_text(text, FILES.get)
    return explore(job.model, job.limits)


@pytest.mark.parametrize("name", list(CASES))
def test_the_protocol_as_it_is_passes_the_scenario_to_its_end(name: str) -> None:
    exploration = explored(CASES[name].scenario)

    assert (exploration.stop, exploration.found) == (Stop.EXHAUSTED, {})
    assert all(count.premise for count in exploration.evaluations.values())


@pytest.mark.parametrize("name", list(CASES))
def test_the_mutant_is_caught(name: str, mutate: Callable[[Mutant], None]) -> None:
    case = CASES[name]
    mutate(case.mutant)
    exploration = explored(case.scenario)

    assert list(exploration.found) == [case.caught_by]
    if case.depth is not None:
        assert exploration.found[case.caught_by].depth == case.depth


@pytest.mark.parametrize("name", list(CASES))
def test_both_engines_run_the_mutant(name: str, mutate: Callable[[Mutant], None]) -> None:
    """The tables are filled by the same functions that the plain engine calls, so neither engine can miss a change."""
    mutate(CASES[name].mutant)
    job = from_text(CASES[name].scenario, FILES.get)

    assert disagreements(explore(job.model), plain.explore(job.model)) == []


def test_every_property_that_must_always_hold_has_a_mutant() -> None:
    always = {
        name
        for name, entry in ENSEMBLE_PROPERTIES.items()
        if entry.kind is Kind.ALWAYS and entry.needs not in (ZAB, RECONFIGURED)
    }

    assert {case.caught_by.partition("(")[0] for case in CASES.values()} == always
