"""The process of one server: it reads the files, runs the node, and ends on a signal or a failing disk.

A part of the limit of file descriptors is kept from clients. A server without a free descriptor can neither begin a new
log file nor write a snapshot, so it would have to stop. The number of a descriptor is the lowest free one. A connection
whose number lies in the reserve is therefore refused: all lower numbers are in use.

Rules:

- Invalid files, directories and ports are errors before the first packet; each message names the remedy.
- The ports open before the node makes any promise. At the end the disk finishes its work, and then the ports close.

Source: `QuorumPeerMain.initializeAndRun`, `runFromConfig`, `ZooKeeperServerMain`.
"""

import asyncio
import logging
import resource
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace as with_fields

from refimpl.clients import ClientPort
from refimpl.clients.four_letter_words import version_text
from refimpl.disk.files import DataError
from refimpl.disk.storage import Storage
from refimpl.journal import Journal
from refimpl.jute import encode
from refimpl.listening import ACCEPTS, MAX_STRANGERS, ListenError
from refimpl.log_lines import RateLimit
from refimpl.membership import Membership, read_next
from refimpl.node import Node
from refimpl.peers.election_port import ElectionSockets
from refimpl.peers.quorum_port import QuorumSockets
from refimpl.replica import Replica
from refimpl.settings import LOOPBACK, Settings, settings_of
from refimpl.system import system
from refimpl.tls import PeerStreams, TlsError
from refimpl.wire.txn import encode_txn
from spec.config import ConfigError, Problem, parse_zoo_cfg
from spec.config.dynamic_files import next_file
from spec.config.server_line import ANY_ADDRESS
from spec.election.messages import Deliver, Notification
from spec.quorum import Sid, View
from spec.server import Server
from spec.text import excerpt
from spec.tree.requests import Request
from spec.tree.txns import Change

if TYPE_CHECKING:
    from refimpl.admin.ports import AdminPorts

logger = logging.getLogger("quorate.server")
logger.addFilter(RateLimit())

_STRANGERS = 4 * MAX_STRANGERS
"""Connections of peers on two ports: those without an introduction, and those outside the configuration."""
_REFUSED = 4 * 4 * ACCEPTS
"""Refused connections of peers, which are closed within four turns of the event loop, on four listening sockets.

A refused client is closed before the next one is accepted.
"""
_OWN = 128
"""Descriptors for the disk, the listening sockets, the event loop, and the connections with configured servers."""
RESERVE = _STRANGERS + _REFUSED + _OWN
"""Descriptors that no client gets: 512."""
_UNLIMITED = 1 << 20


def raise_limit() -> int:
    """Raise the soft limit on open files to the hard one. Return the number of descriptors of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _UNLIMITED if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= target:
        return _UNLIMITED if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    except (OSError, ValueError):  # a system may allow less than its hard limit
        return soft
    return target


def first_reserved(limit: int) -> int:
    """The lowest descriptor that no client gets: behind it lie `RESERVE` ones, or half of a small limit."""
    return limit - min(RESERVE, limit // 2)


class StartError(Exception):
    """The server cannot start; the message names the mistake, its place and the remedy."""


class FailedError(Exception):
    """The server had to stop; the message names the reason."""


def read_settings(path: Path) -> Settings:
    """Read the settings of a `zoo.cfg`, together with its `myid` and its dynamic file.

    Raises ConfigError for mistakes in them, and for a file that cannot be read.
    """
    settings = _settings(path, _read)
    for warning in settings.config.warnings:
        logger.warning("%s", warning)
    return settings


def refusal_of(settings: Settings, membership: Membership, view: View) -> str:
    """The reason why a server that looks for a leader does not adopt a configuration that it hears; empty without one.

    Anybody may send one. The reader of a start must accept the files that the server would have, and it must listen
    where it does now. ZooKeeper adopts each one that is later, and then refuses to start with it or finds no quorum.
    """
    try:
        files = membership.files_with(view)
        after = _settings(membership.zoo_cfg, lambda name: files[name] if name in files else _read(name))
    except (ConfigError, DataError, OSError) as error:
        return str(error)
    if not after.distributed:
        return "this server would run alone with it"
    present, line = settings.peer(settings.sid), after.peer(settings.sid)
    if present is None or line is None or line.addresses != present.addresses:
        return "this server has another address in it"
    hosts = {ANY_ADDRESS, LOOPBACK, *(address.host for address in line.addresses)}
    before, clients = settings.clients, after.clients
    for old, new in ((before.address, clients.address), (before.secure_address, clients.secure_address)):
        if new != old and (old is None or new is None or new.port != old.port or new.host not in hosts):
            return "clients reach this server at another address in it"
    return ""


def _settings(path: Path, read: Callable[[str], str | None]) -> Settings:
    text = read(str(path))
    if text is None:
        raise ConfigError((Problem(str(path), 0, "the file does not exist", "name a zoo.cfg"),))
    first = parse_zoo_cfg(text, str(path), read=read, complete=False)
    myid = read(f"{first.data_dir}/myid") if first.data_dir else None
    config = parse_zoo_cfg(text, str(path), myid, read=read)
    settings = settings_of(config)
    following = read(next_file(str(path))) if config.distributed and config.reconfig_enabled else None
    if following is None:
        return settings
    return with_fields(settings, last_seen=read_next(path, following, settings.view))


def _read(name: str) -> str | None:
    path = system().path(name)
    with suppress(OSError):
        if path.exists() and not path.is_file():  # a pipe may wait for ever
            raise ConfigError((Problem(str(path), 0, "it is no regular file", "name a readable file"),))
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError((Problem(str(path), 0, f"it cannot be read ({error})", "name a readable file"),)) from None


def log_start(settings: Settings) -> None:
    """Log what starts: the version, the file, the id and the addresses."""
    where = [f"clients {address}" for address in (settings.clients.address, settings.clients.secure_address) if address]
    line = settings.peer(settings.sid) if settings.distributed else None
    for address in () if line is None else line.addresses:
        host = address.host
        where += [f"learners {host}:{address.quorum_port}", f"the election {host}:{address.election_port}"]
    who = f"server {settings.sid} of {sorted(settings.view.members)}" if settings.distributed else "a standalone server"
    text = "%s starts: %s; file %s, data in %s; listens for %s"
    logger.info(text, who, version_text(), settings.config.file, settings.data_dir, ", ".join(where))


async def serve(
    settings: Settings,
    journal_path: Path | None,
    stopping: asyncio.Event,
    started: Callable[[Node], None] = lambda _: None,
) -> None:
    """Run a server until `stopping` is set; `started` gets its node.

    Raises StartError, FailedError, DataError and OSError.
    """
    failure: list[str] = []

    def failed(reason: str) -> None:
        failure.append(reason)
        stopping.set()

    log_start(settings)
    storage = Storage(settings)
    loaded = storage.load()
    server = Server(settings.sid, settings.view, storage.durable(loaded), last_seen=settings.last_seen)
    config, membership = settings.config, None
    if settings.distributed:
        membership = Membership(system().path(config.file), settings.sid, config.ensemble, settings.last_seen)
    replica = Replica(loaded.tree, loaded.last_zxid, settings.options, membership, digests=settings.digests)
    limit = raise_limit()
    if limit < 2 * RESERVE:
        logger.warning("only %d files may be open; allow at least %d (ulimit -n)", limit, 2 * RESERVE)
    clients = ClientPort(settings.clients, settings.options, first_reserved(limit))
    journal = _journal(journal_path) if journal_path is not None else None
    node = Node(settings, server, replica, storage, clients, journal, failed, membership)
    admin = None
    try:
        await _start(clients)
        if membership is not None:
            _open_peers(node, settings, membership)
        admin = _open_admin(node, clients, settings, membership)
        node.start()
        started(node)
        purging = asyncio.create_task(_purge(storage, settings)) if settings.purge_interval else None
        await stopping.wait()
        if purging is not None:
            purging.cancel()
    finally:
        if admin is not None:
            admin.close()
        await clients.close()
        _close(node, journal)
    if failure:
        raise FailedError(failure[0])


def _open_admin(
    node: Node, clients: ClientPort, settings: Settings, membership: Membership | None
) -> "AdminPorts | None":
    if settings.admin.admin is None and settings.admin.metrics is None:
        return None
    from refimpl.admin.ports import AdminPorts  # noqa: PLC0415 - h11 takes 25 ms, and most tests need neither port
    from refimpl.admin.view import AdminView  # noqa: PLC0415

    try:
        return AdminPorts(settings.admin, AdminView(node, clients, settings, membership))
    except ListenError as error:
        raise StartError(str(error)) from None


def _journal(path: Path) -> Journal:
    try:
        return Journal(path, encode_value)
    except OSError as error:
        raise StartError(f"{path}: the event log cannot be written: {error.strerror or error}") from None


async def _start(clients: ClientPort) -> None:
    try:
        await clients.start()
    except ListenError as error:
        raise StartError(error.strerror) from None
    except TlsError as error:
        raise StartError(str(error)) from None
    except ValueError as error:
        raise StartError(f"the address for clients cannot be used: {error}") from None


def _open_peers(node: Node, settings: Settings, membership: Membership) -> None:
    line = settings.peer(settings.sid)
    assert line is not None  # parse_zoo_cfg refuses a myid without a server line

    refused = lru_cache(maxsize=16)(partial(refusal_of, settings, membership))

    def deliver(source: Sid, notification: Notification) -> None:
        config = notification.config
        if config is not None and config.version > membership.version and (reason := refused(config)):
            logger.warning("configuration %x of server %d is not adopted: %s", config.version, source, excerpt(reason))
            notification = with_fields(notification, config=None)
        node.submit(lambda: node.run(Deliver(source, notification)))

    try:
        streams = PeerStreams(settings.security)
    except TlsError as error:
        raise StartError(str(error)) from None
    # Without `reconfigEnabled` a configuration that was seen means nothing (`setLastSeenQuorumVerifier`).
    election = ElectionSockets(line, membership, deliver, streams, reads_views=settings.reconfigurable)
    node.election_port = election
    node.quorum_port = QuorumSockets(node, line, membership, streams)
    try:
        election.listen()
    except ListenError as error:
        raise StartError(str(error)) from None


def _close(node: Node, journal: Journal | None) -> None:
    node.stop()
    for port in (node.election_port, node.quorum_port):
        if port is not None:
            port.close()
    if journal is not None:
        journal.close()


async def _purge(storage: Storage, settings: Settings) -> None:
    while True:
        await asyncio.to_thread(storage.purge)
        await asyncio.sleep(settings.purge_interval / 1000)


def encode_value(value: object) -> bytes:
    """The bytes that represent a transaction, or a forwarded request, in a journal."""
    if isinstance(value, Change):
        return encode_txn(0, value)
    assert isinstance(value, Request)
    return f"{value.session} {value.cxid} {value.auth}".encode() + encode(value.record)
