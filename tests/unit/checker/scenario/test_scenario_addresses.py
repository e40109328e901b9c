"""A scenario computes from its files which servers can connect to each other.

The expected behaviour of each roll-out is that of real servers of ZooKeeper 3.8.0 (the first also of 3.9.5), each with
three servers on one machine and 20 s of waiting: either the restarted server follows within 2 s, or it stays LOOKING.
"""

from dataclasses import replace

import pytest

from checker.engine import plain, search
from checker.job import Job
from checker.models.ensemble.setup import CONNECTIONS, server_name
from checker.models.ensemble.status import ElectionStatus, election_status
from checker.scenario import from_text
from spec.quorum import Sid

OLD = "".join(f"server.{sid}=h{sid}:2888:3888\n" for sid in (1, 2, 3))
FILES = {
    "old.cfg": OLD,
    "all.cfg": OLD.replace("2888:3888", "2889:3889"),
    "1.cfg": OLD.replace("h1:2888:3888", "h1:2889:3889"),
    "3.cfg": OLD.replace("h3:2888:3888", "h3:2889:3889"),
    "3-quorum.cfg": OLD.replace("h3:2888:3888", "h3:2889:3888"),
    "both.cfg": OLD.replace(":2888:3888", ":2888:3888|x:2889:3889"),
    "clients.cfg": OLD.replace("3888\n", "3888;2182\n") + "tickTime=500\n",
}
ZAB = "protocol: zab\ngrain: oracle\ndiscovery: one-step\nelections: 3\ndisk: sync\n"
MESSAGES = (
    "protocol: zab\ndisk: sync\ngrain: fine\nrounds: 2\nchannel: {capacity: 1}\n"
    "faults: {notification_timeouts: unlimited}\n"
)


def rolled(model: str, first: tuple[Sid, ...], *restarts: tuple[Sid, str]) -> Job:
    """Return servers that run with old.cfg, and are restarted one after the other with the given files."""
    plan = "".join(f"  - {{restart: {sid}, file: {file}, wait: rejoined}}\n" for sid, file in restarts)
    history = f"history: [{{start: {list(first)}}}, {{start: {[sid for sid in (1, 2, 3) if sid not in first]}}}]\n"
    text = f"file: old.cfg\nservers: [1, 2, 3]\n{history}plan:\n{plan}{model}recoverable: [Settles]\n"
    job = from_text(text, FILES.get, "moved.yaml")
    settles = [prop for prop in job.model.properties if prop.name == "Settles"]
    return replace(job, model=job.model.with_properties(settles))


def stuck(job: Job) -> set[Sid]:
    """Return the LOOKING servers at the ends of runs from which not all servers can settle."""
    found = search.explore(job.model).found.get("Settles")
    if found is None:
        return set()
    row, index = found.path[-1].row, job.model.index
    seen = {sid: election_status(row[index[server_name(sid)]]) for sid in (1, 2, 3)}
    return {sid for sid, each in seen.items() if isinstance(each, ElectionStatus) and each.leader is None}


Restarts = list[tuple[Sid, str]]
LEADS_2, LEADS_3 = (1, 2), (2, 3)
STAYS_LOOKING: list[tuple[tuple[Sid, ...], Restarts, set[Sid]]] = [
    (LEADS_2, [(1, "all.cfg")], {1}),
    (LEADS_3, [(2, "1.cfg")], {2}),
    (LEADS_2, [(3, "3.cfg"), (1, "old.cfg")], {1}),
]
FOLLOWS: list[tuple[tuple[Sid, ...], Restarts]] = [
    (LEADS_2, [(1, "1.cfg")]),
    (LEADS_2, [(3, "3.cfg")]),
    (LEADS_2, [(3, "3-quorum.cfg")]),
    (LEADS_2, [(1, "both.cfg")]),
]


@pytest.mark.parametrize(("first", "restarts", "who"), STAYS_LOOKING)
@pytest.mark.parametrize("model", [ZAB, MESSAGES], ids=["elections in one step", "messages"])
def test_a_server_stays_looking_as_on_real_servers(
    model: str, first: tuple[Sid, ...], restarts: Restarts, who: set[Sid]
) -> None:
    assert stuck(rolled(model, first, *restarts)) == who


@pytest.mark.parametrize(("first", "restarts"), FOLLOWS)
@pytest.mark.parametrize("model", [ZAB, MESSAGES], ids=["elections in one step", "messages"])
def test_a_server_follows_as_on_real_servers(model: str, first: tuple[Sid, ...], restarts: Restarts) -> None:
    assert stuck(rolled(model, first, *restarts)) == set()


@pytest.mark.parametrize("first", [LEADS_2, LEADS_3])
def test_both_engines_explore_the_same_states_where_addresses_differ(first: tuple[Sid, ...]) -> None:
    model = rolled(ZAB, first, (1, "1.cfg"), (2, "1.cfg")).model
    tables, plainly = search.explore(model), plain.explore(model)
    assert (tables.states, tables.levels, tables.found.keys()) == (plainly.states, plainly.levels, plainly.found.keys())
    assert CONNECTIONS in model.index


@pytest.mark.parametrize("file", ["clients.cfg", "both.cfg", "old.cfg"])
def test_addresses_are_no_state_where_everybody_reaches_everybody(file: str) -> None:
    """Client ports, ticks and additional addresses block no connection, so no state distinguishes such files."""
    job = rolled(ZAB, LEADS_2, (1, file))
    assert CONNECTIONS not in job.model.index
    assert search.explore(job.model).states == search.explore(rolled(ZAB, LEADS_2, (1, "old.cfg")).model).states
