"""The four-letter words, compared line by line with the output of Apache ZooKeeper 3.8.0 for the same requests."""

import asyncio
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from refimpl.clients import ClientPort, ClientSettings
from refimpl.clients.settings import whitelist
from spec.config.zoo_cfg import parse_zoo_cfg
from tests.support.memory_server import MemoryServer, Wire

# The output of ZooKeeper with one client that had created /a and the ephemeral /e, and watched /a and the children of
# /.
GOLDEN = Path(__file__).parents[2] / "golden" / "words"
PRINTED = {path.stem: path.read_text(encoding="utf-8") for path in GOLDEN.iterdir()} | {
    "ruok": "imok",
    "isro": "rw",
    "wchs": "1 connections watching 1 paths\nTotal watches:1\n",
    "wchc": "0x10000137bd50000\n\t/a\n\n",
    "wchp": "/a\n\t0x10000137bd50000\n\n",
    "dirs": "datadir_size: 67109337\nlogdir_size: 67109337\n",
    "crst": "Connection stats reset.\n",
    "srst": "Server stats reset.\n",
    "gtmk": "306",
    "hash": "",
}
ENVI = """zookeeper.version host.name java.version java.vendor java.home java.class.path java.library.path \
java.io.tmpdir java.compiler os.name os.arch os.version user.name user.home user.dir os.memory.free \
os.memory.max os.memory.total"""
MNTR = """version server_state ephemerals_count num_alive_connections avg_latency outstanding_requests znode_count \
global_sessions packets_sent packets_received watch_count auth_failed_count min_latency max_file_descriptor_count \
approximate_data_size open_file_descriptor_count local_sessions uptime max_latency connection_rejected"""
ZOO_CFG = "tickTime=2000\ndataDir=/tmp/data\nclientPort=24181\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n"


class World:
    """A client port without a socket; `asks` sends first bytes on a new connection and returns the reply."""

    def __init__(self, settings: ClientSettings) -> None:
        self.loop = asyncio.new_event_loop()
        self.clients = ClientPort(settings)
        self.loop.run_until_complete(self.clients.start())

    def connect(self, port: int, data: bytes) -> tuple[Any, Wire]:
        connection, wire = self.clients.admit("127.0.0.1", port), Wire()
        assert connection is not None
        connection.connection_made(wire)
        connection.data_received(data)
        self.loop.run_until_complete(asyncio.sleep(0))
        return connection, wire

    def asks(self, word: str | bytes) -> str:
        data = word if isinstance(word, bytes) else word.encode()
        connection, wire = self.connect(40000, data)
        text = wire.written.decode()
        assert wire.over
        connection.connection_lost(None)
        return text

    def close(self) -> None:
        self.loop.run_until_complete(self.clients.close())
        self.loop.close()


@pytest.fixture
def world() -> Iterator[World]:
    """A world in the state of the real server when its output was recorded."""
    config = parse_zoo_cfg(ZOO_CFG)
    made = World(msgspec.structs.replace(ClientSettings.of(config, config.client), address=None))
    made.clients.begin(MemoryServer(made.clients))
    connect = struct.pack(">iiqiqi", 45, 0, 0, 10000, 0, 16) + bytes(17)
    acl = struct.pack(">iii5si6s", 1, 31, 5, b"world", 6, b"anyone")
    requests = [
        struct.pack(">iii2si1s", 1, 1, 2, b"/a", 1, b"x") + acl + struct.pack(">i", 0),
        struct.pack(">iii2s?", 2, 4, 2, b"/a", True),
        struct.pack(">iii1s?", 3, 8, 1, b"/", True),
        struct.pack(">iii2si", 5, 1, 2, b"/e", 0) + acl + struct.pack(">i", 1),
    ]
    made.connect(38488, connect + b"".join(struct.pack(">i", len(each)) + each for each in requests))
    yield made
    made.close()


def shape(text: str) -> str:
    """Return the text with every value that differs from run to run replaced by its kind."""
    text = re.sub(r"3\.8\.\S+, built on \S+ \S+ UTC", "VERSION", text)
    text = re.sub(r"expire at \w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}", "expire at DATE", text)
    return re.sub(r"(?<![\w.])(0x[0-9a-f]+|\d+(\.\d+)?)(?!\w)", "N", text)


def lines_in_shape(text: str) -> list[str]:
    return shape(text).split("\n")


@pytest.mark.parametrize("word", PRINTED)
def test_a_word_prints_the_lines_that_zookeeper_prints(world: World, word: str) -> None:
    assert lines_in_shape(world.asks(word)) == lines_in_shape(PRINTED[word])


def test_the_figures_are_those_of_the_client(world: World) -> None:
    text = world.asks("srvr")
    figures = dict(line.split(": ") for line in text.splitlines()[2:])
    # A session and four requests, an event for the children of /, and the word itself; four built-in znodes and two
    # more, with the root counted twice: a fresh server of 3.8 reports five.
    assert figures == {
        "Received": "6",
        "Sent": "6",
        "Connections": "2",
        "Outstanding": "0",
        "Zxid": "0x3",
        "Mode": "standalone",
        "Node count": "7",
    }


def test_mntr_has_a_line_for_each_figure_under_the_names_of_zookeeper(world: World) -> None:
    figures = dict(line.split("\t") for line in world.asks("mntr").splitlines())
    assert set(figures) >= {f"zk_{name}" for name in MNTR.split()}
    assert (figures["zk_znode_count"], figures["zk_ephemerals_count"], figures["zk_watch_count"]) == ("7", "1", "1")
    assert all(re.fullmatch(r"-?\d+(\.\d+)?", value) for value in list(figures.values())[2:])


def test_envi_has_the_properties_of_zookeeper_in_their_order(world: World) -> None:
    head, *lines = world.asks("envi").splitlines()
    assert head == "Environment:"
    assert [line.partition("=")[0] for line in lines][: len(ENVI.split())] == ENVI.split()


def test_a_trace_mask_is_repeated(world: World) -> None:
    assert world.asks(b"stmk" + struct.pack(">q", 306)) == "306"


@pytest.mark.parametrize("word", ["lead", "orst", "reqs", "abcd"])
def test_what_is_no_word_of_zookeeper_ends_the_connection_without_an_answer(world: World, word: str) -> None:
    assert world.asks(word) == ""


def test_only_srvr_is_answered_unless_the_whitelist_says_more() -> None:
    world = World(ClientSettings())
    assert world.asks("ruok") == "ruok is not executed because it is not in the whitelist.\n"
    assert world.asks("srvr") == "This ZooKeeper instance is not currently serving requests\n"
    world.close()


def test_a_server_that_does_not_serve_says_so() -> None:
    world = World(ClientSettings(words=whitelist("*")))
    for word in ("stat", "mntr", "conf", "cons", "wchs", "dump", "dirs", "crst", "srst"):
        assert world.asks(word) == "This ZooKeeper instance is not currently serving requests\n"
    assert (world.asks("ruok"), world.asks("isro")) == ("imok", "null")
    world.close()


def test_a_word_in_two_pieces_is_one_word(world: World) -> None:
    connection, wire = world.connect(40000, b"ru")
    assert not wire.written
    connection.data_received(b"ok")
    assert wire.written == b"imok"


def test_the_whitelist_is_a_list_with_commas() -> None:
    assert whitelist(" ruok, stat ,,") == {"ruok", "stat", "srvr"}
