"""A live ensemble as an input: what its servers answer to the four-letter words `conf` and `srvr`.

Nothing is written, and no session is opened. `conf` has the server's id, its membership with roles, groups and weights,
and some settings; `srvr` has its role and its release. A diagnosis asks for more (`answers_of`): `mntr`, the role alone
where `conf` is not in the whitelist, and an AdminServer, `http://HOST:PORT`. Rules of this module:

- Every server of the membership must be among the addresses, and each address must answer as a different server. A
  server that does not answer is an error that says why, and what to do.
- The host of a server is the one in the other servers' files: its own file may have a wildcard in its place.
- The text that stands for the zoo.cfg has only keys that `conf` states as they are in the file. `ServerFiles.told` has
  these keys, and no other key is compared.
- The version of a membership is above 0 where `reconfigEnabled` is true, and 0 elsewhere: a leader gives the
  configuration a version when it is established (`Leader.lead`, `QuorumPeer.setLastSeenQuorumVerifier`).

Sources: `ConfCommand`, `ZooKeeperServer.dumpConf`, `QuorumZooKeeperServer.dumpConf`, `StatCommand` (`srvr`),
`FourLetterCommands`, `NopCommand`, `ConnectStringParser`; `MonitorCommand`, `Commands` of the AdminServer.
"""

import json
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from checker.rollout.inputs.documents import input_error
from checker.rollout.inputs.folders import Folder, ServerText, collected, state_of
from spec.config import ConfigError, Problem, ServerLine, parse_server, render_server
from spec.config.server_line import BadServerLineError
from spec.quorum import Sid
from spec.quorum.addresses import WILDCARDS
from spec.text import LONG, integer, on_a_line, required_integer

ADDRESS = re.compile(r"(?P<admin>http://)?(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
CLIENT_PORT = 2181
SECONDS = 5.0
"""The limit for the answer to a word, in seconds."""
LONGEST = 256 * 1024
"""The limit for an answer, in bytes."""
MOST = 64
"""The largest number of addresses."""
CHROOT = re.compile(r"(?<![:/])/.*", re.DOTALL)
FIGURES = {
    "synced_followers": "voters that follow it, and have its log",
    "digest_mismatches_count": "transactions whose data differed from those of the leader",
    "unrecoverable_error_count": "threads that failed",
    "snapshot_error_count": "snapshots that could not be written",
    "fsync_threshold_exceed_count": "slow writes to the log",
}
"""The figures of `mntr` that a diagnosis reads, without `zk_`, and their meaning. Those with `_count` are faults."""
SETTINGS = ("tickTime", "initLimit", "syncLimit")
FILE_KEYS = (*SETTINGS, "dataDir", "dataLogDir", "clientPort")
TOLD = frozenset({*FILE_KEYS, "reconfigEnabled"})
MODE = re.compile(r"^Mode: (\S+)", re.MULTILINE)
NOT_LISTED = "is not executed because it is not in the whitelist"
NOT_SERVING = "not currently serving requests"


class Silence(Enum):
    """The reason why an address gives no state of a server."""

    UNKNOWN_HOST = "unknown host"
    TIMEOUT = "no answer in time"
    REFUSED = "nothing listens there"
    UNREACHABLE = "unreachable"
    NOT_LISTED = "the word is not in the whitelist"
    NOT_SERVING = "it runs and does not serve"
    ENDED = "the connection ended without an answer"
    STANDALONE = "it runs standalone, and states no members"
    STRANGER = "no answer of a member of an ensemble"


class NoAnswerError(ConfigError):
    """An address that gives no state of a server; `silence` is the reason, and `mode` the role if that is known."""

    def __init__(self, silence: Silence, address: str, what: str, right: str, mode: str = "") -> None:
        super().__init__((Problem(address, 0, what, right),))
        self.address = address
        self.silence = silence
        self.mode = mode


class Address(NamedTuple):
    """The address of a client port, or of an AdminServer."""

    host: str
    port: int
    is_admin: bool = False

    @property
    def name(self) -> str:
        """The address as a user writes it."""
        return f"{'http://' if self.is_admin else ''}{self.host}:{self.port}"


@dataclass(frozen=True)
class LiveServer:
    """The answers of one server: its address, the lines of `conf`, its membership, its role and its release.

    `zxid` is that of its last applied transaction, None if `srvr` does not state it. An AdminServer has no membership:
    `voting_view` are the voters that it runs with. `follows` is the leader that it names, and `figures` are those of
    `FIGURES` that it states.
    """

    address: str
    sid: Sid
    settings: Mapping[str, str]
    membership: tuple[str, ...]
    mode: str
    release: str
    zxid: int | None = None
    voting_view: frozenset[Sid] = frozenset()
    follows: Sid | None = None
    figures: Mapping[str, int] = field(default_factory=dict)

    @property
    def lines(self) -> dict[Sid, ServerLine]:
        """The servers of the membership. Raises ConfigError."""
        servers: dict[Sid, ServerLine] = {}
        for line in self.membership:
            key, _, value = line.partition("=")
            if (match := re.fullmatch(r"server\.([0-9]{1,18})", key)) is not None:
                try:
                    sid = required_integer(match[1])
                    servers[sid] = parse_server(sid, value)
                except BadServerLineError as error:
                    problem = f"conf has the line {on_a_line(line[:80])}: {error}"
                    raise input_error(self.address, problem, "name the client port of a ZooKeeper server") from None
        return servers

    @property
    def version(self) -> int:
        """The version of the membership."""
        versions = (line.partition("=")[2] for line in self.membership if line.startswith("version="))
        return integer(next(versions, "0"), 0, LONG[1], base=16) or 0


def is_live(text: str) -> bool:
    """Whether a text has the form of addresses: HOST:PORT, or several hosts separated by commas."""
    parts = _hosts_in(text)
    matches = [ADDRESS.fullmatch(part) for part in parts]
    return all(matches) and (len(parts) > 1 or bool(matches[0] and matches[0]["port"]))


def is_path(path: Path) -> bool:
    """Whether there is such a path. Raises ConfigError for a text that is neither addresses nor a name of a file."""
    try:
        return path.exists()
    except (OSError, ValueError):
        if is_live(str(path)):
            return False
        right = "name a folder, a file, or addresses such as zk1:2181,zk2:2181"
        raise input_error(on_a_line(str(path)[:80]), "no file can have this name", right) from None


def read_live(text: str) -> Folder:
    """The state of a live ensemble. Raises ConfigError."""
    servers = collected(answer.result for answer in _answers(text, _server))
    for server, twin in ((server, twin) for twin, server in combinations(servers, 2) if server.sid == twin.sid):
        problem = f"it answers as server {server.sid}, as {twin.address} does"
        right = "name the address of each server itself, not that of a load balancer"
        raise input_error(server.address, problem, right)
    leader = _leader(servers)
    _check_members(servers, text)
    sentences = [
        f"{server.address} is server {server.sid}, {server.mode}, release {server.release}; id and members are those of"
        " `conf`"
        for server in sorted(servers, key=lambda server: server.sid)
    ]
    sentences.append(f"of the keys of a zoo.cfg `conf` states {', '.join(FILE_KEYS)} and the members: see what differs")
    return state_of(text, texts_of(servers), sentences, leader=leader)


def texts_of(servers: Iterable[LiveServer]) -> list[ServerText]:
    """The text that stands for the zoo.cfg of each server, by their ids."""
    hosts = _hosts(servers := sorted(servers, key=lambda server: server.sid))
    return [
        ServerText(
            server.sid,
            server.address,
            _text(server, hosts),
            told=TOLD | {line.partition("=")[0] for line in server.membership},
            written=False,
        )
        for server in servers
    ]


def answers_of(text: str) -> list[LiveServer | NoAnswerError]:
    """The answer of each address, in their order. Raises ConfigError for a text that is not addresses."""
    answers = _answers(text, _witness)
    return [error if isinstance(error := answer.exception(), NoAnswerError) else answer.result() for answer in answers]


def _answers(text: str, ask: Callable[[Address], LiveServer]) -> list[Future[LiveServer]]:
    """The answer of each address. All are asked in parallel, and each has answered or failed."""
    addresses = [_address(part) for part in _hosts_in(text)]
    if len(addresses) > MOST:
        raise input_error(text[:80], f"there are {len(addresses)} addresses", f"name at most {MOST}")
    with ThreadPoolExecutor(len(addresses)) as pool:
        return [pool.submit(ask, address) for address in addresses]


def _hosts_in(text: str) -> list[str]:
    """The addresses of a connect string, without its chroot."""
    return [part.strip() for part in CHROOT.sub("", text.strip()).split(",")]


def _address(part: str) -> Address:
    match = ADDRESS.fullmatch(part)
    port = integer(match["port"] or str(CLIENT_PORT), 1, 65535) if match is not None else None
    if match is None or port is None:
        raise input_error(part[:80], "not an address", "write HOST:PORT, such as zk1:2181")
    return Address(match["host"].strip("[]"), port, bool(match["admin"]))


def _word(address: Address, word: str, request: str = "") -> str:
    """The answer to a four-letter word, or to another request of this name. Raises NoAnswerError."""
    name = address.name
    again = "start the server or correct the address; without it, give the zoo.cfg files in a folder"
    try:
        answer = _exchange(address, request or word)
    except (socket.gaierror, UnicodeError):  # the second for a label that no host name can have
        raise NoAnswerError(Silence.UNKNOWN_HOST, name, "this host name is unknown here", again) from None
    except TimeoutError:
        raise NoAnswerError(Silence.TIMEOUT, name, f"no answer to {word} within {SECONDS:.0f} s", again) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        silence = Silence.REFUSED if isinstance(error, ConnectionRefusedError) else Silence.UNREACHABLE
        raise NoAnswerError(silence, name, f"it cannot be reached: {reason}", again) from None
    if NOT_LISTED in answer:
        right = "add conf and srvr to 4lw.commands.whitelist of this server, or give the zoo.cfg files in a folder"
        problem = f"the server does not execute {word}: it is not in its whitelist"
        raise NoAnswerError(Silence.NOT_LISTED, name, problem, right)
    if NOT_SERVING in answer:
        right = "wait until it serves (it has no leader now), or give the zoo.cfg files in a folder"
        raise NoAnswerError(Silence.NOT_SERVING, name, "the server does not serve now", right)
    if not answer.strip():
        right = "name the plain client port of a ZooKeeper server: four-letter words are not sent over TLS"
        raise NoAnswerError(Silence.ENDED, name, f"the connection ended without an answer to {word}", right)
    return answer


def _exchange(address: Address, request: str) -> str:
    """The answer to a request, until the server closes. Raises OSError, and TimeoutError if that takes too long."""
    end = time.monotonic() + SECONDS
    received = b""
    with socket.create_connection(address[:2], timeout=SECONDS) as connection:
        connection.sendall(request.encode("ascii"))
        while len(received) < LONGEST:
            connection.settimeout(max(0.01, end - time.monotonic()))
            if time.monotonic() > end:
                raise TimeoutError
            try:
                part = connection.recv(65536)
            except ConnectionResetError:
                break
            if not part:
                break
            received += part
    return received.decode("utf-8", "replace")


def _server(address: Address) -> LiveServer:
    """A server with its membership. Raises ConfigError."""
    name = address.name
    if address.is_admin:
        right = "name the client port of the server, or give the zoo.cfg files in a folder"
        raise input_error(name, "an AdminServer does not state the observers of an ensemble", right)
    conf, srvr = (_word(address, word) for word in ("conf", "srvr"))
    head, membered, tail = conf.partition("membership:")
    settings = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    mode = MODE.search(srvr)
    release = re.search(r"^Zookeeper version: ([0-9][^\s,-]*)", srvr, re.MULTILINE)
    sid = integer(settings.get("serverId", ""), 0, LONG[1])
    if sid is None or mode is None:
        raise _stranger(address, conf)
    if not membered:
        problem = f"the server runs {on_a_line(mode[1][:20])}, and has no membership"
        raise NoAnswerError(Silence.STANDALONE, name, problem, "give its zoo.cfg in a folder")
    membership = tuple(line.strip() for line in tail.splitlines() if "=" in line)
    zxid = re.search(r"^Zxid: 0x([0-9a-f]{1,16})\s*$", srvr, re.MULTILINE)
    return LiveServer(
        name, sid, settings, membership, on_a_line(mode[1][:20]), release[1] if release else "unknown",
        None if zxid is None else required_integer(zxid[1], base=16),
    )  # fmt: skip


def _witness(address: Address) -> LiveServer:
    """A server with all that it states to a diagnosis. Raises NoAnswerError, with the role if that alone is known."""
    if address.is_admin:
        return _of_admin(address)
    try:
        server = _server(address)
    except NoAnswerError as error:
        if error.silence is Silence.NOT_LISTED and (mode := MODE.search(_word(address, "srvr"))) is not None:
            error.mode = on_a_line(mode[1][:20])
        raise
    try:
        _ = server.lines
    except ConfigError as error:
        (problem,) = error.problems
        raise NoAnswerError(Silence.STRANGER, address.name, problem.what, problem.right, server.mode) from None
    try:
        lines = [line.partition("\t") for line in _word(address, "mntr").splitlines()]
    except NoAnswerError:
        return server
    return replace(server, figures=_figures({key.removeprefix("zk_"): value for key, _, value in lines}))


def _figures(fields: Mapping[str, Any]) -> dict[str, int]:
    numbers = {key: integer(str(fields.get(key, "")), 0, LONG[1]) for key in FIGURES}
    return {key: number for key, number in numbers.items() if number is not None}


def _of_admin(address: Address) -> LiveServer:
    """A server by its AdminServer. Raises NoAnswerError."""
    conf, stats = _command(address, "configuration"), _command(address, "server_stats")
    state, sid = _map(stats, "server_stats"), integer(str(conf.get("server_id", "")), 0, LONG[1])
    release = re.match(r"[0-9][^\s,-]*", str(stats.get("version", "")))
    mode = re.fullmatch(r"[a-z-]{1,20}", str(state.get("server_state", "")))
    if sid is None or mode is None:
        raise _stranger(address, json.dumps(conf))
    voters = [integer(key, 0, LONG[1]) for key in _map(_extra(address, "voting_view"), "current_config")]
    return LiveServer(
        address.name, sid, {"clientPort": str(conf.get("client_port", ""))}, (), mode[0],
        release[0] if release else "unknown", integer(str(state.get("last_processed_zxid", "")), 0, LONG[1]),
        frozenset(sid for sid in voters if sid is not None),
        integer(str(_extra(address, "leader").get("leader_id", "")), 0, LONG[1]),
        _figures(_extra(address, "monitor") | state),
    )  # fmt: skip


def _command(address: Address, command: str) -> dict[str, Any]:
    """The answer to a command of an AdminServer. Raises NoAnswerError."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    request = f"GET /commands/{command} HTTP/1.0\r\nHost: {host}:{address.port}\r\n\r\n"
    answer = _word(address, command, request)
    head, _, body = answer.partition("\r\n\r\n")
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or fields.get("command") != command:
        raise _stranger(address, head)
    return fields


def _extra(address: Address, command: str) -> dict[str, Any]:
    """The answer to a command that not every release has; empty without one."""
    try:
        return _command(address, command)
    except NoAnswerError:
        return {}


def _map(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = fields.get(key)
    return value if isinstance(value, dict) else {}


def _stranger(address: Address, answer: str) -> NoAnswerError:
    right = "name the client port of a ZooKeeper server, or http:// and the port of its AdminServer"
    return NoAnswerError(
        Silence.STRANGER, address.name, f"not an answer of ZooKeeper: {on_a_line(answer[:60])!r}", right
    )


def _leader(servers: list[LiveServer]) -> Sid | None:
    leaders = [server for server in servers if server.mode == "leader"]
    if len(leaders) > 1:
        names = " and ".join(f"server {leader.sid}" for leader in leaders)
        raise input_error(leaders[1].address, f"{names} both lead", "compare their data before you change anything")
    return leaders[0].sid if leaders else None


def _check_members(servers: list[LiveServer], text: str) -> None:
    first = servers[0]
    for server in servers[1:]:
        if server.lines.keys() != first.lines.keys():
            mine, theirs = (", ".join(map(str, sorted(one.lines))) for one in (first, server))
            problem = f"server {server.sid} has the members {theirs}, and server {first.sid} has {mine}"
            right = "give the files before and after the change, and these with --now"
            raise input_error(server.address, f"{problem}: a change is under way", right)
    for sid, line in sorted(first.lines.items()):
        if sid not in [server.sid for server in servers]:
            problem = f"server {sid} ({line.addresses[0].host}) is a member, and none of these addresses is its"
            raise input_error(text, problem, f"add the client address of server {sid}")


def _hosts(servers: list[LiveServer]) -> dict[Sid, ServerLine]:
    """For each server the line that another one has of it, if there is one; a wildcard comes last."""
    lines: dict[Sid, ServerLine] = {}
    for server in servers:
        for sid, line in server.lines.items():
            if sid not in lines or (lines[sid].addresses[0].host in WILDCARDS and sid != server.sid):
                lines[sid] = line
    return lines


def _text(server: LiveServer, hosts: Mapping[Sid, ServerLine]) -> str:
    lines = [f"{key}={server.settings[key]}" for key in SETTINGS if key in server.settings]
    directories = {key: server.settings.get(key, "").removesuffix("/version-2") for key in ("dataDir", "dataLogDir")}
    if directories["dataLogDir"] == directories["dataDir"]:  # the default
        del directories["dataLogDir"]
    lines += [f"{key}={directory}" for key, directory in directories.items() if directory]
    if (port := server.settings.get("clientPort", "-1")) not in ("-1", "0"):
        lines.append(f"clientPort={port}")
    if server.version:
        lines += ["reconfigEnabled=true", f"version={server.version:x}"]
    for sid, line in sorted(server.lines.items()):
        owner = hosts[sid] if line.addresses[0].host in WILDCARDS else line
        # Without client addresses: each server states its own only.
        lines.append(f"server.{sid}={render_server(ServerLine(sid, owner.addresses, owner.learner_type))}")
    lines += [line for line in server.membership if line.startswith(("group.", "weight."))]
    return "\n".join(lines) + "\n"
