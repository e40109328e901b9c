"""The settings that a node reads from zoo.cfg: defaults, each key, and errors that name the key and the correction."""

from pathlib import Path
from typing import Any

import pytest

from refimpl.settings import Settings, settings_of
from spec.config import Address, ConfigError, parse_zoo_cfg
from spec.quorum import majority_view

ALONE = {"dataDir": "/var/lib/zookeeper", "clientPort": "2181"}
THREE = {"initLimit": "10", "syncLimit": "5"} | {f"server.{n}": f"zk{n}:2888:3888" for n in (1, 2, 3)}


def settings(myid: str | None = None, **keys: str | None) -> Settings:
    """Return the settings of a standalone server whose file also has these keys; None removes a key."""
    written = {key.replace("__", "."): value for key, value in (ALONE | keys).items()}
    text = "".join(f"{key}={value}\n" for key, value in written.items() if value is not None)
    return settings_of(parse_zoo_cfg(text, "zoo.cfg", myid))


def problems(**keys: str | None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        settings(**keys)
    return [str(problem) for problem in caught.value.problems]


def test_a_server_alone_has_id_0_and_is_its_own_quorum() -> None:
    found = settings()
    assert (found.sid, found.distributed) == (0, False)
    assert found.view == majority_view({0})


def test_a_member_has_its_id_and_times_in_milliseconds() -> None:
    found = settings(myid="2", tickTime="400", **{key.replace(".", "__"): value for key, value in THREE.items()})
    assert (found.sid, found.distributed, found.reconfigurable) == (2, True, False)
    assert (found.tick_time, found.init_time, found.sync_time) == (400, 4000, 2000)
    peer = found.peer(3)
    assert peer is not None
    assert peer.addresses[0].quorum_port == 2888


@pytest.mark.parametrize(
    ("name", "default", "key", "text", "value"),
    [
        ("snap_count", 100_000, "snapCount", "500", 500),
        ("trusts_empty", False, "snapshot__trust__empty", "TRUE", True),
        ("purge_interval", 0, "autopurge__purgeInterval", "2", 2 * 3_600_000),
        ("snapshots_kept", 3, "autopurge__snapRetainCount", "5", 5),
        ("jute_maxbuffer", 0xFFFFF, "jute__maxbuffer", "4194304", 4_194_304),
        ("jute_maxbuffer", 0xFFFFF, "jute__maxbuffer", "0x400000", 4_194_304),
        ("log_dir", Path("/var/lib/zookeeper"), "dataLogDir", "/log", Path("/log")),
        ("tick_time", 3000, "tickTime", "100", 100),
    ],
)
def test_a_key_and_its_default(name: str, default: Any, key: str, text: str, value: Any) -> None:
    assert getattr(settings(), name) == default
    assert getattr(settings(**{key: text}), name) == value


@pytest.mark.parametrize(
    ("name", "default", "key", "text", "value"),
    [
        ("extended_types", False, "extendedTypesEnabled", "TRUE", True),
        ("extended_types", False, "extendedTypesEnabled", "yes", False),
        ("skip_acl", False, "skipACL", "yes", True),
        ("skip_acl", False, "skipACL", "true", False),
        ("super_digest", "", "DigestAuthenticationProvider__superDigest", "super:x", "super:x"),
    ],
)
def test_an_option_of_the_tree_is_on_as_zookeeper_reads_it(
    name: str, default: Any, key: str, text: str, value: Any
) -> None:
    assert getattr(settings().options, name) == default
    assert getattr(settings(**{key: text}).options, name) == value


def test_without_an_address_it_listens_on_loopback_only() -> None:
    assert settings().clients.address == Address("127.0.0.1", 2181)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "zk1.example.org"])
def test_an_address_that_is_written_is_listened_at(host: str) -> None:
    assert settings(clientPortAddress=host).clients.address == Address(host, 2181)


def test_a_secure_port_without_an_address_listens_on_loopback_too(tmp_path: Path) -> None:
    store = tmp_path / "server.pem"
    store.write_text("")
    files = {"ssl.keyStore.location": str(store), "ssl.clientAuth": "none"}
    found = settings(clientPort=None, secureClientPort="2281", **files)
    assert found.clients.address is None
    assert found.clients.secure_address == Address("127.0.0.1", 2281)


@pytest.mark.parametrize(
    ("key", "text", "least"),
    [
        ("snapCount", "1", 2),
        ("snapCount", "many", 2),
        ("snapCount", "1_000", 2),
        ("autopurge.purgeInterval", "-1", 0),
        ("autopurge.snapRetainCount", "2", 3),
        ("snapCount", "9" * 5000, 2),
    ],
)
def test_a_number_that_cannot_be_names_file_key_and_what_would_be_right(key: str, text: str, least: int) -> None:
    assert problems(**{key: text}) == [f"zoo.cfg: {key}: {text!r} will not do; write a number from {least} on"]


@pytest.mark.parametrize(
    ("key", "text", "least"),
    [
        ("maxClientCnxns", "-1", 0),
        ("globalOutstandingLimit", "none", 1),
        ("jute.maxbuffer", "1023", 1024),
        ("nio.sessionlessCnxnTimeout", "0", 1),
    ],
)
def test_so_does_one_of_the_client_port_and_nothing_else_is_blamed(key: str, text: str, least: int) -> None:
    (problem,) = problems(**{key: text})
    assert problem.startswith(f"zoo.cfg: {key}={text}: not a whole number of at least {least}")


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert [line.split(": ")[1] for line in problems(snapCount="0", autopurge__snapRetainCount="1")] == [
        "snapCount",
        "autopurge.snapRetainCount",
    ]


def test_without_a_client_port_there_is_nothing_to_do() -> None:
    assert problems(clientPort=None) == ["zoo.cfg: clientPort is missing; add clientPort=2181"]
