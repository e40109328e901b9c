"""The register of the kit: counts of stateright's own tests, and histories judged by enumeration of all orders.

The tests of stateright 0.31 (crates.io) have 16,668 states of Paxos with two clients (`examples/paxos.rs`), 93 of one
copy with two clients (`examples/single-copy-register.rs`), 288 and 8,832 of two-phase commit with 3 and 5 resource
managers (`examples/2pc.rs`). The other counts, and the transitions, are those that its examples print when they are run
with these sizes and networks.
"""

import importlib.util
import sys
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import TRIVIAL, Finding, ModelError, Stop, plain, search
from checker.engine.result import disagreements
from checker.kit import Machine, Network, Reaction
from checker.kit.register import (
    GetFrom,
    GetReply,
    GetRequest,
    Invoked,
    PutReply,
    PutRequest,
    PutTo,
    RegisterHistory,
    Returned,
    ScriptedClient,
    linearizable_property,
    record,
    register_model,
    scripted_clients,
)

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def one_copy(value: Any, source: str, message: Any) -> Reaction | None:
    match message:
        case PutRequest(request, new):
            return Reaction(new, ((source, PutReply(request)),))
        case GetRequest(request):
            return Reaction(value, ((source, GetReply(request, value)),))
    return None


def copies(number: int, clients: int = 2) -> Any:
    names = [f"s{n}" for n in range(1, number + 1)]
    servers = [Machine(name, Reaction(None), one_copy) for name in names]
    return register_model("copies", servers, scripted_clients(names, clients))


def test_paxos_has_as_many_states_as_in_stateright() -> None:
    found = search.explore(example("paxos").model(2))
    assert (found.stop, found.states, found.transitions, found.violations) == (Stop.EXHAUSTED, 16_668, 32_970, [])
    assert "ValueRead" in found.found


@pytest.mark.parametrize(
    ("managers", "states", "transitions"), [(3, 288, 1_145), (5, 8_832, 58_145), (7, 296_448, 2_744_705)]
)
def test_two_phase_commit_has_the_space_of_stateright(managers: int, states: int, transitions: int) -> None:
    found = search.explore(example("two_phase_commit").model(managers))
    assert (found.stop, found.states, found.transitions) == (Stop.EXHAUSTED, states, transitions)
    assert found.violations == []
    assert {"AllCommitted", "AllAborted"} <= set(found.found)


@pytest.mark.parametrize(("name", "most"), [("paxos", 80), ("two_phase_commit", 50)])
def test_the_examples_are_short(name: str, most: int) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) <= most


@pytest.mark.parametrize(
    ("network", "states", "transitions"),
    [
        (Network(), 265, 481),
        (Network(ordered=True), 237, 511),
        (Network(lossy=True), 2_378, 8_196),
        (Network(ordered=True, lossy=True), 1_150, 3_778),
    ],
    ids=str,
)
def test_paxos_on_each_network_has_the_space_of_stateright(network: Network, states: int, transitions: int) -> None:
    model = example("paxos").model(1, network)
    found = plain.explore(model)
    assert (found.states, found.transitions, found.violations) == (states, transitions, [])
    assert disagreements(found, search.explore(model)) == []


def test_a_second_reply_to_one_request_is_ignored() -> None:
    """Two servers of Paxos may both answer a put. The second answer is no answer to the get that follows it."""
    found = search.explore(example("paxos").model(2, Network(ordered=True)))
    assert (found.stop, found.violations) == (Stop.EXHAUSTED, [])


def test_one_copy_is_linearizable() -> None:
    found = plain.explore(copies(1))
    assert (found.states, found.violations) == (93, [])


def test_two_copies_are_not() -> None:
    """The shortest run: c1 puts at s1 and has the reply, then gets the first value from s2. That is four deliveries."""
    found = plain.explore(copies(2)).found["Linearizable"]
    assert found.depth == 4
    assert found.finding.values == (("c1", ["put A", "get -> None"]), ("c2", ["put B (no reply)"]))


class QuorumRegister:
    """The register of Attiya, Bar-Noy and Dolev, written after stateright's `examples/linearizable-register.rs`.

    A state is the sequencer, the value and the phase: ("query", request, write, responses) or ("record", request, read,
    acknowledgements). A request is a pair of the client and its number.
    """

    def __init__(self, name: str, peers: list[str]) -> None:
        self.name, self.peers, self.majority = name, peers, (len(peers) + 1) // 2 + 1

    def on_message(self, own: Any, source: str, message: Any) -> Reaction | None:
        seq, value, phase = own
        match message:
            case PutRequest() | GetRequest() if phase is None:
                write = (message.value,) if isinstance(message, PutRequest) else None
                request = (source, message.request)
                responses = frozenset({(self.name, seq, value)})
                return Reaction((seq, value, ("query", request, write, responses)), self.to_peers("query", request))
            case ("query", request):
                return Reaction(own, ((source, ("ack query", request, seq, value)),))
            case ("ack query", request, other, found) if phase and phase[:2] == ("query", request):
                responses = phase[3] | {(source, other, found)}
                return self.record(own, responses, phase)
            case ("record", request, other, found):
                after = (other, found, phase) if other > seq else own
                return Reaction(after, ((source, ("ack record", request)),))
            case ("ack record", request) if phase and phase[:2] == ("record", request) and source not in phase[3]:
                acks = phase[3] | {source}
                if len(acks) < self.majority:
                    return Reaction((seq, value, (*phase[:3], acks)))
                client, number = request
                reply = PutReply(number) if phase[2] is None else GetReply(number, phase[2][0])
                return Reaction((seq, value, None), ((client, reply),))
        return None

    def record(self, own: Any, responses: Any, phase: Any) -> Reaction:
        seq, value, _ = own
        _, request, write, _ = phase
        if len(responses) < self.majority:
            return Reaction((seq, value, ("query", request, write, responses)))
        _, newest, found = max(responses, key=lambda each: each[1])
        read = None if write else (found,)
        if write:
            newest, found = (newest[0] + 1, self.name), write[0]
        sends = self.to_peers("record", request, newest, found)
        if newest > seq:
            seq, value = newest, found
        return Reaction((seq, value, ("record", request, read, frozenset({self.name}))), sends)

    def to_peers(self, *message: Any) -> Any:
        return tuple((peer, message) for peer in self.peers)


def test_the_register_of_attiya_bar_noy_and_dolev_has_the_states_of_stateright() -> None:
    """stateright's test has 544 states of two servers and two clients."""
    names = ["s1", "s2"]
    servers = []
    for name in names:
        peers = [each for each in names if each != name]
        servers.append(Machine(name, Reaction(((0, name), None, None)), QuorumRegister(name, peers).on_message))
    model = register_model("quorum register", servers, scripted_clients(names, 2))
    found = search.explore(model)
    assert (found.stop, found.states, found.violations) == (Stop.EXHAUSTED, 544, [])
    assert disagreements(plain.explore(model), found) == []


def test_a_script_names_its_steps() -> None:
    first, second = scripted_clients(["s1", "s2", "s3"], 2, puts=2)
    assert first == ScriptedClient("c1", (PutTo("s1", "A1"), PutTo("s2", "A2"), GetFrom("s3")))
    assert second == ScriptedClient("c2", (PutTo("s2", "B1"), PutTo("s3", "B2"), GetFrom("s1")))


def test_a_script_with_an_unknown_server_is_refused() -> None:
    with pytest.raises(ModelError, match=r"the script of 'c1' names 's9'; the servers are s1"):
        register_model("wrong", [Machine("s1", Reaction(None))], [ScriptedClient("c1", (GetFrom("s9"),))])


# -- the judge -----------------------------------------------------------------------------------------------


Event = tuple[int, bool, str | None]  # client, whether it puts, the value that it puts or would read
NAMES = ("c1", "c2", "c3")
events = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.sampled_from(["A", "B", None])), max_size=8)


def played(schedule: list[Event]) -> tuple[RegisterHistory, list[list[Any]]]:
    """A history, and its operations as [client, put, value, invoked, completed or None]; each event flips a client."""
    history = RegisterHistory.of(NAMES)
    operations: list[list[Any]] = []
    for time, (client, is_put, value) in enumerate(schedule):
        pending = next((each for each in operations if each[0] == client and each[4] is None), None)
        if pending is None:
            operations.append([client, is_put, value or "C", time, None])
            history = record(history, Invoked(client, is_put, (value or "C") if is_put else None))
        else:
            pending[4] = time
            pending[2] = pending[2] if pending[1] else value
            history = record(history, Returned(client, None if pending[1] else value))
    return history, operations


def explained(operations: list[list[Any]]) -> bool:
    """Whether some order of all completed operations and some of the pending puts is that of a register."""
    completed = [each for each in operations if each[4] is not None]
    pending = [each for each in operations if each[4] is None and each[1]]
    for number in range(2 ** len(pending)):
        chosen = completed + [each for place, each in enumerate(pending) if number >> place & 1]
        if any(is_order(order) for order in permutations(chosen)):
            return True
    return False


def is_order(order: tuple[list[Any], ...]) -> bool:
    value = None
    for place, (_, is_put, shown, invoked, _) in enumerate(order):
        if any(later[4] is not None and later[4] < invoked for later in order[place + 1 :]):
            return False
        if not is_put and shown != value:
            return False
        value = shown if is_put else value
    return True


@given(events)
@settings(deadline=None, max_examples=300)
def test_the_judge_agrees_with_an_enumeration_of_all_orders(schedule: list[Event]) -> None:
    history, operations = played(schedule)
    found = linearizable_property().check(history)
    if not any(each[4] is not None for each in operations):
        assert found is TRIVIAL
    else:
        assert isinstance(found, Finding) == (not explained(operations))
