"""The ports of one server in the planner. What cannot be bound together is that of 3.9.5, by its source.

The first two pairs were tried on real servers: with clientPort on the quorum port the ensemble has no service after the
last restart, and with one port for both kinds of clients a server ends at its start.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checker.rollout.files.keys import occupied
from checker.rollout.inputs.folders import read_folder
from checker.rollout.stages import one_at_a_time

# Servers of one host: the files are written by hand, one for each server.


Place = tuple[str, int, int, int]
"""A host, and its quorum port, election port and client port."""


def servers(path: Path, places: dict[int, Place]) -> Path:
    """A folder with a file for each server, which has its own client port."""
    path.mkdir(parents=True)
    lines = "".join(f"server.{sid}={host}:{quorum}:{election}\n" for sid, (host, quorum, election, _) in places.items())
    for sid, (*_, client) in places.items():
        text = f"tickTime=2000\ninitLimit=5\nsyncLimit=2\ndataDir=/d\nclientPort={client}\n{lines}"
        (path / f"zoo-{sid}.cfg").write_text(text, encoding="utf-8")
    return path


THREE: dict[int, Place] = {sid: (f"host{sid}", 2888, 3888, 2181) for sid in (1, 2, 3)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (THREE, {**THREE, 4: ("host3", 2889, 3889, 2182)}),
        (THREE, {**THREE, 3: ("host3", 2889, 3889, 2182)}),
        ({sid: ("localhost", 2880 + sid, 3880 + sid, 2181) for sid in (1, 2, 3)},) * 2,  # an excerpt
        ({1: ("localhost", 2888, 3888, 2181)}, {1: ("host1", 2888, 3888, 2181), 2: ("host2", 2888, 3888, 2181)}),
    ],
)
def test_ports_that_no_other_server_has_are_free(tmp_path: Path, old: dict[int, Place], new: dict[int, Place]) -> None:
    before, after = (read_folder(servers(tmp_path / name, each)) for name, each in (("old", old), ("new", new)))
    assert list(occupied(before.servers, after.servers)) == []


@st.composite
def ensembles(draw: st.DrawFn) -> dict[int, Place]:
    """A few servers on few hosts with few ports, no two of them at one place."""
    sids = draw(st.sets(st.integers(1, 6), min_size=3, max_size=5))
    places = draw(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=len(sids), max_size=len(sids), unique=True
        )
    )
    return {
        sid: (host, 2000 + port, 3000 + port, 4000 + port)
        for sid, (host, port) in zip(sorted(sids), places, strict=True)
    }


@example(  # server 2 keeps its client port until the last stage, and server 3 needs it on the new host
    {1: ("a", 2000, 3000, 4000), 2: ("a", 2001, 3001, 4001), 3: ("c", 2000, 3000, 4000)},
    {1: ("a", 2000, 3000, 4000), 2: ("b", 2000, 3000, 4000), 3: ("b", 2001, 3001, 4001)},
)
@given(ensembles(), ensembles())
def test_no_two_servers_of_a_stage_have_one_port_of_a_host(old: dict[int, Place], new: dict[int, Place]) -> None:
    """By the texts of the written files: in a stage servers run with those of two states."""
    with TemporaryDirectory() as name:
        folders = [read_folder(servers(Path(name, side), each)) for side, each in (("old", old), ("new", new))]
    before, after = (files.servers for files in folders)
    if list(occupied(before, after)):
        return
    for stage in one_at_a_time(*folders)[0]:
        ids: dict[tuple[str, int], set[int]] = {}
        for state in (stage.old, stage.new):
            for sid, file in state.files.items():
                client = re.search(r"clientPort=(\d+)", state.texts[file])
                own = re.search(rf"server\.{sid}=(\w+):(\d+):(\d+)", state.texts[file])
                assert own and client
                for port in (own[2], own[3], client[1]):
                    ids.setdefault((own[1], int(port)), set()).add(sid)
        assert all(len(holding) == 1 for holding in ids.values())
