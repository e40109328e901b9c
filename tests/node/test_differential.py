"""The same commands at two ensembles have the same answers: real against real (the harness), real against ours."""

import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import Mock

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import commands as c
from harness.conform.known_causes import cause_of
from harness.conform.mismatch import Mismatch
from harness.ensemble import Ensemble
from harness.interpreter import Seen
from harness.releases import DEBIAN
from spec.tree.replies import Code
from tests.node.conftest import NEWEST
from tests.node.scripts import first_difference, run_script

SESSIONS = 3
# The server deletes containers and TTL znodes at times of its choice: here, never.
OPTIONS: dict[str, Any] = {
    "tick_time": 100,
    "extra": {
        "maxSessionTimeout": "60000",
        "initLimit": "200",
        "syncLimit": "200",
        "extendedTypesEnabled": "true",
        "znode.container.checkIntervalMs": "86400000",
    },
    "java_options": ["-Dznode.container.checkIntervalMs=86400000"],
}
# 3.8.0 returns the Stat of any znode to every client; ours behaves like 3.8.4.
OPTIONS_OF = {
    DEBIAN: OPTIONS | {"extra": OPTIONS["extra"] | {"quorate.existsNeedsRead": "false"}, "release": DEBIAN},
    NEWEST: OPTIONS | {"release": NEWEST},
}
# Each against real servers of the release; real ones too, to show that the harness requires nothing of its own.
PAIRS = {
    "real-real": (DEBIAN, ["real"]),
    "real-node": (DEBIAN, ["node"]),
    f"real-node {NEWEST}": (NEWEST, ["node"]),
}
TRIOS = {
    "real-real": (DEBIAN, ["real"] * 3),
    "real-node": (DEBIAN, ["node"] * 3),
    "real-mixed": (DEBIAN, ["node", "real", "node"]),
    f"real-node {NEWEST}": (NEWEST, ["node"] * 3),
    f"real-mixed {NEWEST}": (NEWEST, ["node", "real", "node"]),
}
SLOW_TRIOS = [f"real-node {NEWEST}"]
EXAMPLES = settings(
    deadline=None, derandomize=True, print_blob=True, database=None, suppress_health_check=list(HealthCheck)
)

MOST_REPETITIONS = 10


class Twins(NamedTuple):
    """Two ensembles that receive the same scripts, and the release of their real servers."""

    release: str
    both: tuple[Ensemble, Ensemble]


# Few paths, so that commands meet; the second line has paths that no znode may have.
PATHS = st.sampled_from(
    ["", "/a", "/b", "/a/b", "/a/c", "/a/b/d", "/0000000000", "/a0000000000", "/a/0000000001", "/b/e"]
)
BAD_PATHS = st.sampled_from(["/", "/a/", "/a//b", "/./a", "/a/..", "/\0", "/a\x1f", "/\ud7ff\uf8ff", "/\uffff"])
ANY_PATH = st.one_of(*[PATHS] * 9, BAD_PATHS)
WHO = st.integers(0, SESSIONS - 1)
DATA = st.sampled_from([b"", b"x", b"longer", None])
VERSIONS = st.sampled_from([-1, -1, -1, 0, 0, 1, 2, -2])
PERMS = st.sampled_from([31, 31, 31, 1, 2, 3, 4, 8, 9, 16, 17, 28, 0, 32])
DIGEST_ANNA = "anna:Wap/fLaD11BLJBT+7fkDcVxaT7c="  # base64(SHA-1("anna:secret")), see DigestAuthenticationProvider
WORLD = st.tuples(PERMS, st.just("world"), st.just("anyone"))
ENTRIES = st.one_of(
    WORLD,
    st.tuples(PERMS, st.just("auth"), st.just("")),
    st.tuples(PERMS, st.just("digest"), st.just(DIGEST_ANNA)),
    st.tuples(PERMS, st.just("ip"), st.sampled_from(["127.0.0.1", "127.0.0.0/8", "10.0.0.1", "nowhere", "1.2.3.4/99"])),
    st.tuples(
        st.just(31),
        st.sampled_from(["world", "digest", "nosuch", ""]),
        st.sampled_from(["", "somebody", "a:b:c", "x:y"]),
    ),
)
SOME_ACLS = st.one_of(st.lists(ENTRIES, max_size=3).map(tuple), st.none())
ACLS = st.one_of(st.just(c.OPEN), st.just(c.OPEN), SOME_ACLS)
# Mode 7 does not exist.
FLAGS = st.one_of(st.integers(0, 3), st.integers(0, 7))
CREATES = st.builds(
    c.Create,
    who=WHO,
    path=ANY_PATH,
    data=DATA,
    acl=ACLS,
    flags=FLAGS,
    by=st.sampled_from([c.CREATE, c.CREATE2, c.CREATE2, c.CREATE_CONTAINER, c.CREATE_TTL]),
    ttl=st.sampled_from([1_000_000, 0, -1, 1 << 41]),
)
# Most creates are plain ones, so that the other commands find znodes.
PLAIN_CREATES = st.builds(c.Create, who=WHO, path=PATHS, data=DATA, flags=st.integers(0, 3), by=st.just(c.CREATE2))
CONTAINERS = st.builds(
    c.Create, who=WHO, path=PATHS, flags=st.just(c.CONTAINER), by=st.just(c.CREATE_CONTAINER), data=DATA
)
TTLS = st.builds(
    c.Create, who=WHO, path=PATHS, flags=st.integers(5, 6), by=st.just(c.CREATE_TTL), ttl=st.just(1_000_000)
)
DELETES = st.builds(c.Delete, who=WHO, path=ANY_PATH, version=VERSIONS)
SETS = st.builds(c.Set, who=WHO, path=ANY_PATH, data=DATA, version=VERSIONS)
SET_ACLS = st.builds(c.SetAcl, who=WHO, path=ANY_PATH, acl=SOME_ACLS, version=VERSIONS)
CHECKS = st.builds(c.Check, who=WHO, path=ANY_PATH, version=VERSIONS)
GETS = st.builds(c.Get, who=WHO, path=ANY_PATH, watch=st.booleans())
CHILDREN = st.builds(c.Children, who=WHO, path=ANY_PATH, watch=st.booleans())
READS = st.one_of(
    GETS,
    CHILDREN,
    st.builds(c.Exists, who=WHO, path=ANY_PATH, watch=st.booleans()),
    st.builds(c.Children2, who=WHO, path=ANY_PATH, watch=st.booleans()),
    st.builds(c.GetAcl, who=WHO, path=ANY_PATH),
    st.builds(c.Count, who=WHO, path=ANY_PATH),
    st.builds(c.Ephemerals, who=WHO, path=ANY_PATH),
    st.builds(c.Sync, who=WHO, path=ANY_PATH),
    st.builds(c.WhoAmI, who=WHO),
)
SOME_PATHS = st.lists(PATHS, max_size=3, unique=True).map(tuple)
# The set of types that mean persistent watches has changed: in 3.8, which answers here, it is 1 and 2; since 3.9 it is
# 4 and 5. Types 1 and 2 are therefore used only where no watch is persistent. Types and modes that do not exist are
# left out: they cause exceptions in the real server's FinalRequestProcessor.
ANY_WATCHES = st.one_of(
    st.builds(c.CheckWatches, who=WHO, path=PATHS, type=st.just(3)),
    st.builds(c.RemoveWatches, who=WHO, path=PATHS, type=st.just(3)),
)
WATCHES = st.one_of(
    st.builds(c.AddWatch, who=WHO, path=ANY_PATH, mode=st.sampled_from([0, 1])),
    st.builds(c.AddWatch, who=WHO, path=PATHS, mode=st.sampled_from([0, 1])),
    ANY_WATCHES,
)
ONE_SHOT_WATCHES = st.one_of(
    ANY_WATCHES,
    st.builds(c.CheckWatches, who=WHO, path=PATHS, type=st.integers(1, 2)),
    st.builds(c.RemoveWatches, who=WHO, path=PATHS, type=st.integers(1, 2)),
)
AUTHS = st.builds(
    c.AddAuth,
    who=WHO,
    scheme=st.sampled_from(["digest", "digest", "digest", "digest", "ip", "nosuch"]),
    auth=st.sampled_from([b"anna:secret", b"bert:secret", b""]),
)
# In a multi 3.8.0 answers create2 as if it were create; later releases, and ours, give the Stat too.
MULTI_CREATES = st.one_of(CREATES, PLAIN_CREATES, PLAIN_CREATES).map(
    lambda create: msgspec.structs.replace(create, by=c.CREATE) if create.by == c.CREATE2 else create
)
# Flags that such a create may not have: 3.8.0 fails one operation, later releases and ours fail the whole multi.
MULTI_CREATES = MULTI_CREATES.filter(lambda create: create.flags <= (6 if create.by == c.CREATE_TTL else c.CONTAINER))
MULTI_PARTS = st.one_of(MULTI_CREATES, MULTI_CREATES, DELETES, SETS, CHECKS)
MULTIS = st.builds(c.Multi, who=WHO, parts=st.lists(MULTI_PARTS, max_size=4).map(tuple))
ANY_MULTIS = st.builds(
    c.Multi,
    who=WHO,
    parts=st.lists(st.one_of(CREATES, PLAIN_CREATES, DELETES, SETS, CHECKS), max_size=4).map(tuple),
)
WATCH_TYPES = st.integers(1, 5)
NEWER_WATCHES = st.one_of(
    WATCHES,
    st.builds(c.CheckWatches, who=WHO, path=PATHS, type=WATCH_TYPES),
    st.builds(c.RemoveWatches, who=WHO, path=PATHS, type=WATCH_TYPES),
)
MULTI_READS = st.builds(c.MultiRead, who=WHO, parts=st.lists(st.one_of(GETS, CHILDREN), max_size=3).map(tuple))
CONNECTIONS = st.one_of(
    st.builds(c.Connect, who=WHO, server=st.integers(0, 2)),
    st.builds(c.Connect, who=WHO, server=st.integers(0, 2)),
    st.builds(c.Drop, who=WHO),
    st.builds(c.Close, who=WHO),
)
SET_ONE_SHOT = st.builds(c.SetWatches, who=WHO, data=SOME_PATHS, exist=SOME_PATHS, child=SOME_PATHS)
SET_ANY = st.builds(
    c.SetWatches,
    who=WHO,
    data=SOME_PATHS,
    exist=SOME_PATHS,
    child=SOME_PATHS,
    persistent=SOME_PATHS,
    recursive=SOME_PATHS,
)
MOVES = st.one_of(CONNECTIONS, CONNECTIONS, SET_ANY)
EXPIRIES = st.builds(c.Expire, who=WHO)

TREE = st.one_of(CREATES, PLAIN_CREATES, PLAIN_CREATES, CONTAINERS, TTLS, DELETES, SETS, SETS, READS, READS)
ALL = st.one_of(
    TREE, TREE, TREE, PLAIN_CREATES, SET_ACLS, AUTHS, MULTIS, MULTIS, MULTI_READS, WATCHES, WATCHES, READS, MOVES, MOVES
)
CHANGES = st.one_of(PLAIN_CREATES, PLAIN_CREATES, DELETES, SETS, MULTIS)
WATCHED = st.one_of(WATCHES, READS, CHANGES, CHANGES, MOVES, EXPIRIES)
ONE_SHOT = st.one_of(ONE_SHOT_WATCHES, READS, READS, CHANGES, CHANGES, CONNECTIONS, SET_ONE_SHOT, EXPIRIES)
SECURED = st.one_of(AUTHS, SET_ACLS, CREATES, CREATES, READS, DELETES, SETS, MULTIS, MULTI_READS, MOVES)
STRATEGIES = {"tree": TREE, "all": ALL, "watches": WATCHED, "one-shot": ONE_SHOT, "acls": SECURED}
# The commands that 3.8.0 answers otherwise, and the newest release as ours does, are added to its scripts.
NEWER = {
    name: st.one_of(strategy, strategy, strategy, NEWER_WATCHES, ANY_MULTIS) for name, strategy in STRATEGIES.items()
} | {"watches": WATCHED}

_roots = itertools.count(1)


def compare(twins: Twins, script: c.Script) -> None:
    """Execute the script at both, below a root with the same name, and show the first difference.

    A script with an answer that a real server is known to hold (`CAUSES`) is repeated: the request of another session,
    which the harness then makes, takes zxids. Any other late answer is a difference.
    """
    places = [[ensemble.client_port(sid) for sid in ensemble.sids] for ensemble in twins.both]
    for _ in range(MOST_REPETITIONS):
        root = f"/run-{next(_roots)}"
        # At the same time: most of it is the wait for expiries.
        with ThreadPoolExecutor(len(places)) as pool:
            one, other = pool.map(partial(run_script, root=root, sessions=SESSIONS, script=script), places)
        if not any(map(partial(is_held, twins.release), twins.both, (one, other))):
            break
    if twins.release == DEBIAN:
        one = list(map(without_a_check_too_many, one, other))
    difference = first_difference(one, other)
    assert difference is None, difference


def is_held(release: str, ensemble: Ensemble, record: list[Seen]) -> bool:
    """Whether a record of real servers has a late answer that is known of their release."""
    late = next((seen for seen in record if seen.late), None)
    if late is None or "real" not in map(ensemble.kind, ensemble.sids):
        return False
    outcome, events = late.outcome, late.events
    cause = cause_of(Mismatch(late.command, outcome, outcome, events, events, late=True), release)
    return cause is not None and cause.explains


def without_a_check_too_many(real: Seen, other: Seen) -> Seen:
    """Return the first server's result, corrected if it is a check of watches with the known wrong answer.

    3.8.0 reports a watch of a session at a path if any session has one there (`WatchManager.containsWatcher`).
    """
    errors = tuple(getattr(seen.outcome, "err", None) for seen in (real, other))
    if isinstance(real.command, c.CheckWatches) and errors == (Code.OK, Code.NO_WATCHER):
        return real._replace(outcome=other.outcome)
    return real


def drive(twins: Twins, name: str, examples: int, longest: int) -> None:
    """Compare this number of random scripts."""
    commands = (STRATEGIES if twins.release == DEBIAN else NEWER)[name]

    @settings(EXAMPLES, max_examples=examples)
    @given(st.lists(commands, min_size=1, max_size=longest).map(tuple))
    def agree(script: c.Script) -> None:
        compare(twins, script)

    agree()


Launch = Callable[..., Ensemble]


class Models:
    """The real servers that the others must equal: one ensemble for all twins of a release and a size, in turn."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._key: tuple[str, int] | None = None
        self._model: Ensemble | None = None

    def of(self, release: str, size: int) -> Ensemble:
        """Return the ensemble of the last call if it fits and runs; else start one, and stop the last one."""
        if self._model is None or self._key != (release, size) or not self._model.running:
            self.close()
            self._key, self._model = (release, size), self._launch(["real"] * size, **OPTIONS_OF[release])
        return self._model

    def close(self) -> None:
        if self._model is not None:
            self._model.shut_down()


@pytest.fixture(scope="module")
def models(launch: Launch) -> Models:
    return Models(launch)


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest, models: Models, launch: Launch) -> Iterator[Twins]:
    yield from twins_of(*PAIRS[request.param], models, launch)


@pytest.fixture(
    scope="module", params=[pytest.param(each, marks=pytest.mark.slow if each in SLOW_TRIOS else ()) for each in TRIOS]
)
def trios(request: pytest.FixtureRequest, models: Models, launch: Launch) -> Iterator[Twins]:
    yield from twins_of(*TRIOS[request.param], models, launch)


def twins_of(release: str, kinds: list[str], models: Models, launch: Launch) -> Iterator[Twins]:
    """Yield twins of real servers and of these kinds; those of these kinds end before the next ones begin."""
    twins = Twins(release, (models.of(release, len(kinds)), launch(kinds, **OPTIONS_OF[release])))
    yield twins
    twins.both[1].shut_down()


@pytest.mark.parametrize(
    ("release", "kind", "repeated"), [(DEBIAN, "real", True), (NEWEST, "real", False), (DEBIAN, "node", False)]
)
def test_only_a_script_with_an_answer_that_real_servers_are_known_to_hold_is_repeated(
    monkeypatch: pytest.MonkeyPatch, release: str, kind: str, repeated: bool
) -> None:
    seen = Seen(c.Drop(0), "dropped", ())
    records = {1: [[seen], [seen._replace(late=True)]], 2: [[seen], [seen]]}
    both = tuple(
        Mock(sids=[1], client_port=Mock(return_value=port), kind=Mock(return_value=name))
        for port, name in ((1, kind), (2, "node"))
    )
    monkeypatch.setattr(sys.modules[__name__], "run_script", lambda places, **_: records[places[0]].pop())
    with nullcontext() if repeated else pytest.raises(AssertionError, match=r"dropped \(late\)"):
        compare(Twins(release, both), (seen.command,))
    assert len(records[2]) == (0 if repeated else 1)


@pytest.mark.parametrize("name", STRATEGIES)
def test_one_server_answers_as_the_real_one(pair: Twins, name: str) -> None:
    drive(pair, name, examples=10, longest=25)


@pytest.mark.parametrize("name", ["all", "watches"])
def test_three_servers_with_sessions_on_each_answer_as_real_ones(trios: Twins, name: str) -> None:
    drive(trios, name, examples=4, longest=20)


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_one_server_answers_as_the_real_one_at_length(pair: Twins, name: str) -> None:
    drive(pair, name, examples=400, longest=60)


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_three_servers_answer_as_real_ones_at_length(trios: Twins, name: str) -> None:
    drive(trios, name, examples=150, longest=50)
