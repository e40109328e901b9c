"""A scenario with a number of servers is the scenario with a list of these servers and with files written by hand."""

from pathlib import Path

import pytest

from checker.cli.nodes import KEYS, presets
from checker.cli.options import parser
from checker.scenario import ScenarioError, bundled, from_text
from tests.support.command_line import Write, cli, scenarios_in

PRESETS = [path for path in bundled() if path.parent.name == "nodes"]
TAIL = "protocol: zab\ngrain: oracle\nelections: 1\nworkload: {writes: 1}\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Write:
    return scenarios_in(tmp_path)


def test_a_number_stands_for_a_list_with_files() -> None:
    by_number = from_text(
        "servers: {count: 3, observers: 1, established: true, other_view: {2: [1, 2]}, epoch: 1, log: [1:1]}\n" + TAIL,
        lambda _: None,
    )
    members = "server.1=a:2888:3888\nserver.2=b:2888:3888\n"
    files = {"zoo.cfg": members + "server.3=c:2888:3888:observer\n", "server-2.cfg": members}
    disk = "epoch: 1, log: [1:1]"
    by_list = from_text(
        f"file: zoo.cfg\nservers:\n  1: {{{disk}}}\n  2: {{file: server-2.cfg, {disk}}}\n  3: {{{disk}}}\n"
        f"history: [{{start: [1, 2, 3]}}]\n{TAIL}",
        {name: "initLimit=5\nsyncLimit=2\n" + text for name, text in files.items()}.get,
    )
    assert by_number.model.initial() == by_list.model.initial()
    assert (by_number.actions, by_number.bounds) == (by_list.actions, by_list.bounds)


def test_the_last_servers_are_late_and_a_greater_number_is_all_of_them() -> None:
    def late(number: int) -> frozenset[int]:
        job = from_text(f"servers: {{count: 3, late: {number}}}\ngrain: oracle\n", lambda _: None)
        (faults,) = (value for value in job.model.initial() if hasattr(value, "late"))
        return frozenset(faults.late)

    assert [late(number) for number in (0, 2, 7)] == [set(), {2, 3}, {1, 2, 3}]


def test_a_size_has_its_keys_and_merges_maps() -> None:
    text = "sizes: {2: {}, 3: {rounds: 1, faults: {crashes: 2}}}\nfaults: {crashes: 1, restarts: 1}\n"
    two, three = (from_text(f"servers: {{count: {count}}}\n{text}", lambda _: None) for count in (2, 3))
    assert {"at most 1 crash, 1 restart after a crash", "no election beyond round 3"} <= {*two.bounds}
    assert {"at most 2 crashes, 1 restart after a crash", "no election beyond round 1"} <= {*three.bounds}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "servers: {count: 4}\nsizes: {3: {}}\n",
            "1: servers.count: 4 is not a size of this scenario; write one of 3,",
        ),
        ("servers: {count: 0}\n", "1: servers.count: 0 servers; write one of 1 to 9"),
        ("servers: {count: 10}\n", "1: servers.count: 10 servers; write one of 1 to 9"),
        ("servers: {count: 3}\nsizes: {3: {servers: {count: 4}}}\n", "2: sizes.3.servers.count: it is written twice"),
        ("servers: {count: 3}\nsizes: {3: {fualts: {}}}\n", "2: sizes.3.fualts: unknown key; did you mean faults?"),
        ("servers: {count: 3}\nsizes:\n  3: {}\n  4: {fualts: {}}\n", "4: sizes.4.fualts: unknown key; did you mean"),
        ("servers: {count: 3}\nsizes:\n  3: {}\n  12: {}\n", "4: sizes.12: 12 servers; write one of 1 to 9"),
        ("servers: {count: 3}\nsizes: {3: {sizes: {4: {}}}}\n", "2: sizes.3.sizes: unknown key"),
        ("servers: {count: 3}\nsizes: {3: {faults: {crashes: -1}}}\n", "2: faults.crashes: a budget below zero"),
        ("servers: [1, 2]\nsizes: {2: {}}\n", "2: sizes: the scenario has no number of servers"),
        ("servers: {count: 3}\nfile: zoo-3.cfg\n", "1: servers.count: the files of such servers are made for them"),
        ("servers: {count: 3, established: true, late: 1}\n", "1: servers.established: it starts all servers"),
        ("servers: {count: 2, observers: 2}\n", "1: servers.observers: 2 leaves no voter among 2 servers"),
        (
            "servers: {count: 2, other_view: {1: [2]}}\n",
            "1: servers.other_view: no server 1 has such a file; write for",
        ),
        ("servers: {count: 2, other_view: {3: [3]}}\n", "1: servers.other_view: no server 3 has such a file"),
        ("servers: {count: 2, other_view: {2: [2, 2]}}\n", "1: servers.other_view: no server 2 has such a file"),
        ("servers: {count: 2, other_view: {2: [2, -1]}}\n", "1: servers.other_view: no server 2 has such a file"),
    ],
)
def test_a_mistake_is_named_at_its_place(text: str, error: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        from_text(text, {"zoo-3.cfg": "server.1=a:1:2\n"}.get, "s.yaml")
    assert str(raised.value).startswith(f"s.yaml:{error}")


@pytest.mark.parametrize("nodes", range(1, 8))
def test_each_preset_loads_in_each_of_its_sizes(nodes: int) -> None:
    chosen = [keys["name"] for keys in presets(nodes)]
    middle = ["established"] * (nodes > 1) + ["crash, observer, another view"] * (nodes > 2)
    last = ["a broken link"] * (1 < nodes <= 4) + ["faults of every kind"] * (nodes > 1)
    assert chosen == ["cold start", *middle, *last]
    ended = cli("--nodes", nodes, "--depth", 0, "--format", "none")
    assert "error" not in ended.err


def test_a_preset_runs_by_its_file_as_in_its_set(scenario: Write) -> None:
    """The number in the file is one of its sizes; another number is written there."""
    path = next(path for path in PRESETS if path.stem == "nodes-6-every-fault")
    (run,) = cli("run", scenario(path.read_text().replace("count: 3", "count: 2")), "--json").data["runs"]
    of_set = {run["job"]["name"]: run["search"]["levels"] for run in cli("--nodes", 2, "--json").data["runs"]}
    assert run["search"]["levels"] == of_set["faults of every kind"]


def test_an_option_of_an_ensemble_counts_also_with_its_usual_value() -> None:
    assert {value for name, value in vars(parser().parse_args([])).items() if name in KEYS} == {None}
    for option in ("--rounds", 2), ("--observers", 0), ("--crashes", 0), ("--writes", 0):
        (run,) = cli("--nodes", 2, *option, "--depth", 0, "--json").data["runs"]
        assert run["job"]["name"] == "as described"
    words = "--nodes 3 --protocol zab --grain oracle --elections 0 --depth 0 --json"
    (run,) = cli(*words.split()).data["runs"]
    assert "at most 0 elections of a leader" in run["job"]["bounds"]
