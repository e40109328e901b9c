"""Quotas at a node and at a real server of 3.9.5: the same requests, the same answers and the same use."""

import random
from collections.abc import Callable

import pytest

from harness.commands import OPEN
from harness.ensemble import Ensemble
from harness.session import Answer, Session
from tests.node.conftest import NEWEST
from tests.node.patience import LONG_LIMITS

CREATE, DELETE, GET_DATA, SET_DATA, MULTI, CREATE2, CLOSE = 1, 2, 4, 5, 14, 15, -11
QUOTA = "/zookeeper/quota"
LIMITS, STATS = "zookeeper_limits", "zookeeper_stats"
Server = tuple[Session, int]


def create(client: Session, path: str, data: bytes = b"", flags: int = 0) -> int:
    return client.ask(CREATE, path, data, OPEN, flags).err


def set_quota(client: Session, path: str, limits: bytes) -> list[int]:
    """What `setquota` of zkCli.sh sends: the znodes on the way, the limits, and the use, which the server corrects."""
    names = path.split("/")[1:]
    above = [create(client, QUOTA + "".join(f"/{name}" for name in names[: end + 1])) for end in range(len(names))]
    return [
        *above,
        create(client, f"{QUOTA}{path}/{LIMITS}", limits),
        create(client, f"{QUOTA}{path}/{STATS}", b"count=0,bytes=0"),
    ]


def use(client: Session, path: str) -> object:
    """The data and the version of the use of a quota."""
    answer = client.ask(GET_DATA, f"{QUOTA}{path}/{STATS}", False)
    return (answer.err, answer.values[0], answer.values[1].version) if answer.values else answer.err


def plain(answer: Answer) -> object:
    """An answer without its zxids and times."""
    return answer.err, [value if not hasattr(value, "czxid") else value.data_length for value in answer.values]


def counting(client: Session, place: int) -> list[object]:
    """The use of a quota through every kind of change, with data of given sizes."""
    found: list[object] = [create(client, "/q", b"12345"), create(client, "/q/before", b"123")]
    found.append(set_quota(client, "/q", b"count=1,bytes=2"))
    found.append(use(client, "/q"))
    for path, data, flags in (("/q/a", b"1", 0), ("/q/a/b", b"22", 0), ("/q/s-", b"", 2), ("/q/c", b"4444", 4)):
        found += [create(client, path, data, flags), use(client, "/q")]
    found.append(plain(client.ask(CREATE2, f"{QUOTA}/q/{STATS}-other", b"x", OPEN, 0)))
    for path, data in (("/q/a", b"1234567890"), ("/q/a", b""), ("/q", b"1"), ("/q/none", b"1")):
        found += [client.ask(SET_DATA, path, data, -1).err, use(client, "/q")]
    found += [client.ask(DELETE, path, -1).err for path in ("/q/a", "/q/a/b", "/q/a", "/q/c")]
    found.append(use(client, "/q"))
    operations = ((CREATE, ("/q/m", b"mm", OPEN, 0)), (SET_DATA, ("/q/m", b"mmm", -1)), (DELETE, ("/q/before", -1)))
    found += [[result[:2] for result in client.ask(MULTI, *operations).values], use(client, "/q")]
    other = Session(10_000)
    other.connect(place)
    found += [create(other, "/q/e", b"ee", 1), use(client, "/q"), other.ask(CLOSE).err, use(client, "/q")]
    other.drop()
    found.append(create(client, "/q-other", b"x"))
    found += [use(client, "/q"), create(client, "/q/inner", b"i"), set_quota(client, "/q/inner", b"count=5,bytes=5")]
    found += [create(client, "/q/inner/x", b"xx"), use(client, "/q/inner"), use(client, "/q")]
    found += [client.ask(DELETE, f"{QUOTA}/q/inner/{LIMITS}", -1).err, create(client, "/q/inner/y", b"yy")]
    found += [use(client, "/q/inner"), use(client, "/q")]
    return found


def limits(client: Session, _place: int) -> list[object]:
    """Writes up to hard and soft limits, and beyond."""
    found: list[object] = []
    cases = (
        b"count=-1,bytes=-1=;byteHardLimit=6;countHardLimit=3",
        b"count=2,bytes=3",
        b"count=-1,bytes=-1=;byteHardLimit=0",
        b"count=1,bytes=1=;countHardLimit=-1",
        b"bytes=1=;byteHardLimit=-1,countHardLimit=2",
    )
    for number, text in enumerate(cases):
        root = f"/l{number}"
        found.append(create(client, root, b""))
        found.append(set_quota(client, root, text))
        writes = [(f"{root}/a", b"12"), (f"{root}/b", b"12345"), (f"{root}/b", b"1234"), (f"{root}/c", b"")]
        found += [create(client, path, data) for path, data in writes]
        found += [create(client, f"{root}/e-", b"", flags) for flags in (1, 3, 4)]
        for path, data, version in ((root, b"1", -1), (root, b"12", 7), (f"{root}/a", b"1234567", -1)):
            found.append(client.ask(SET_DATA, path, data, version).err)
        found.append(client.ask(SET_DATA, f"{root}/a", b"", -1).err)
        operations = tuple((CREATE, (f"{root}/m{each}", b"", OPEN, 0)) for each in range(3))
        found.append([result[:2] for result in client.ask(MULTI, *operations).values])
        found.append(use(client, root))
    return found


def random_writes(client: Session, _place: int) -> list[object]:
    """A hundred and fifty writes of one seed below nested quotas, with the use of each quota after every tenth."""
    chosen = random.Random(20)
    paths = ["/r", "/r/a", "/r/a/b", "/r/c", "/r/c/d", "/r/c/d/e"]
    found: list[object] = [create(client, "/r"), set_quota(client, "/r", b"count=9,bytes=9=;byteHardLimit=40")]
    quotas = ["/r", "/r/a", "/r/c/d"]
    for number in range(150):
        path, data = chosen.choice(paths), bytes(chosen.randrange(12))
        match chosen.randrange(8):
            case 0 | 1 | 2:
                found.append(create(client, path, data))
            case 3 | 4:
                found.append(client.ask(SET_DATA, path, data, -1).err)
            case 5:
                found.append(client.ask(DELETE, path, -1).err)
            case 6:
                found.append(set_quota(client, chosen.choice(quotas), b"count=3,bytes=7=;countHardLimit=4"))
            case 7:
                gone = chosen.choice(quotas[1:])
                found += [client.ask(DELETE, f"{QUOTA}{gone}/{name}", -1).err for name in (LIMITS, STATS)]
        if number % 10 == 0:
            found.append([use(client, quota) for quota in quotas])
    return found


SCRIPTS: dict[str, Callable[[Session, int], list[object]]] = {
    "counting": counting,
    "limits": limits,
    "random writes": random_writes,
}


@pytest.fixture(scope="module")
def both(launch: Callable[..., Ensemble]) -> tuple[Ensemble, Ensemble]:
    """A real server and a node that enforce quotas."""
    keys = {"enforceQuota": "true"}
    real, node = (launch([kind], standalone=True, extra=keys, release=NEWEST) for kind in ("real", "node"))
    return real, node


def run(name: str, ensemble: Ensemble) -> list[object]:
    client = Session(10_000)
    client.connect(ensemble.client_port(1))
    try:
        return SCRIPTS[name](client, ensemble.client_port(1))
    finally:
        client.drop()


@pytest.mark.parametrize("name", SCRIPTS)
def test_quotas_are_counted_and_enforced_as_by_the_real_server(name: str, both: tuple[Ensemble, Ensemble]) -> None:
    real, node = (run(name, ensemble) for ensemble in both)
    assert node == real


def test_a_use_that_no_integer_holds_ends_no_server(launch: Callable[..., Ensemble]) -> None:
    """The text has more digits than `int` reads. It is written by one client and found by another one."""
    ensemble = launch(["node"] * 3, tick_time=250, extra=LONG_LIMITS | {"enforceQuota": "true"})
    client = Session(10_000)
    client.connect(ensemble.client_port(ensemble.leader()))
    create(client, "/app")
    set_quota(client, "/app", b"count=9,bytes=9")
    for name in (STATS, LIMITS):
        assert client.ask(SET_DATA, f"{QUOTA}/app/{name}", b"count=" + b"9" * 5000, -1).err == 0
        assert create(client, f"/app/{name}") == 0
    client.drop()
    other = Session(10_000)
    other.connect(ensemble.client_port(next(sid for sid in ensemble.sids if sid != ensemble.leader())))
    assert create(other, "/app/other") == 0
    other.drop()
    assert ensemble.running == ensemble.sids


@pytest.mark.slow
def test_a_server_that_starts_again_counts_from_its_tree(launch: Callable[..., Ensemble]) -> None:
    """The use is written wrongly by a client first, and each server puts it right when it reads its snapshot."""
    found = []
    for kind in ("real", "node"):
        ensemble = launch([kind], standalone=True, release=NEWEST)
        client = Session(10_000)
        client.connect(ensemble.client_port(1))
        create(client, "/w", b"12")
        set_quota(client, "/w", b"count=5,bytes=5")
        client.ask(SET_DATA, f"{QUOTA}/w/{STATS}", b"count=77,bytes=77", -1)
        before = use(client, "/w")
        client.drop()
        ensemble.stop(1)
        ensemble.start_all()
        client = Session(10_000)
        client.connect(ensemble.client_port(1))
        create(client, "/w/more", b"1")
        found.append((before, use(client, "/w")))
        client.drop()
    assert found[1] == found[0]
