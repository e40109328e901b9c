"""The generator of changes for the planner against reality: the same from one seed, and of every kind.

The expected values are the deck of `tests.reality.changes` itself, and ZooKeeper's reading of a file
(`QuorumPeerConfig.parseProperties`), as `spec.config` has it.
"""

from collections import Counter
from ipaddress import ip_address
from pathlib import Path

import pytest

from spec.config import parse_zoo_cfg
from tests.reality.changes import KINDS, Change, Route, change_of
from tests.reality.states import Place, State, ensemble, filled, network_of

COUNT = 150


def changes(seed: int) -> list[Change]:
    return [change_of(seed, number) for number in range(1, COUNT + 1)]


def test_a_change_depends_on_the_seed_and_its_number_alone() -> None:
    once = changes(7)
    assert [change_of(7, number) for number in range(COUNT, 0, -1)] == once[::-1]
    assert [change.number for change in once] == list(range(1, COUNT + 1))
    assert once != changes(8)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_kind_and_every_route_occurs(seed: int) -> None:
    made = changes(seed)
    assert {change.kind for change in made} == {kind.name for kind in KINDS}
    assert {change.route for change in made} == set(Route)


def test_a_deck_has_each_kind_as_often_as_its_routes() -> None:
    size = sum(len(kind.routes) for kind in KINDS)
    assert size <= COUNT
    dealt = Counter((change.kind, change.route) for change in changes(5)[:size])
    assert dealt == Counter((kind.name, route) for kind in KINDS for route in kind.routes)


@pytest.mark.parametrize("seed", [1, 2])
def test_zookeeper_accepts_the_files_before_a_change(seed: int) -> None:
    for change in changes(seed):
        for sid, text in change.old.texts().items():
            config = parse_zoo_cfg(filled(text, Path("/d"), "127.0.0"), "zoo.cfg", f"{sid}\n", {}.get)
            assert config.effective_view.voters == set(change.old.voters)
            assert config.effective_view.standalone == (len(change.old.sids) == 1)


@pytest.mark.parametrize("seed", [1, 2])
def test_servers_have_addresses_of_their_own_before_a_change(seed: int) -> None:
    for change in changes(seed):
        hosts = [place.host for place in change.old.places.values()]
        assert len(set(hosts)) == len(hosts)


def test_the_file_of_a_server_has_the_lines_of_all_members_and_its_own_keys() -> None:
    state = State(
        {1: Place("127.36.0.1"), 2: Place("127.36.0.2", observer=True)}, {"snapCount": "7"}, {2: {"snapCount": "8"}}
    )
    first, second = (text.splitlines() for text in state.texts().values())
    assert "server.1=127.36.0.1:2888:3888" in first and "server.2=127.36.0.2:2888:3888:observer" in first
    assert "snapCount=7" in first and "snapCount=8" in second
    assert "peerType=observer" in second and "peerType=observer" not in first
    assert "dataDir={home}/server-2/data" in second and "clientPortAddress=127.36.0.2" in second


def test_a_key_without_a_value_is_left_out() -> None:
    text = ensemble(1).with_keys({"clientPort": None, "initLimit": "7"}).text(1)
    assert "clientPort=" not in text
    assert "initLimit=7" in text.splitlines() and "initLimit=50" not in text


def test_programs_that_run_at_once_have_loopback_addresses_of_their_own() -> None:
    networks = [network_of(process) for process in range(1000, 5000)]
    assert len(set(networks)) == 4000
    assert all(ip_address(f"{network}.19").is_loopback for network in networks)
