"""The packets of the model as bytes for the server under test, and its bytes as packets of the model.

A transaction of the model is a zxid and the number of a client's write; on the wire it creates a znode. The server
under test makes transactions of its own, and their bytes are kept.

A view of the model has the ids of its members, and a view on the wire their ports.

The coders are those of the node (`refimpl.wire`); this module knows no format.
"""

from collections.abc import Callable

from harness.processes import LOOPBACK
from harness.reproduce.disks import NO_CVERSION, SESSION_MILLISECONDS, creation_of, path_of
from refimpl.disk.body import body_chunks
from refimpl.peers.quorum_socket import SIGNATURE
from refimpl.tree import Tree
from refimpl.wire import quorum as wire
from refimpl.wire.packet import Packet, PacketType, encode_raw
from refimpl.wire.txn import decode_txn, encode_txn
from spec.quorum import Reconfiguration, Sid, View, majority_view
from spec.text import integer
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE, Id
from spec.tree.paths import CONFIG
from spec.tree.requests import Create, CreateSession, Request, Sync
from spec.tree.txns import Change, CreateSessionTxn, CreateTxn, ReconfigTxn
from spec.txn import Txn, format_zxid
from spec.zab import packets as zab

PREFIX = path_of(0, 0)[:-1]
"""The beginning of the path that a client's write creates."""

MANY = 1 << 30
CLIENT = (Id("ip", LOOPBACK),)
"""The identities of a client; a real leader fails on a request without any."""


class Wire:
    """The coder of one episode; `first` is the view of the files, and `config_of` makes the text of a view.

    With `local_sessions` a client of a peer writes in a session that the server under test does not know. Without, each
    write of such a client begins a session.
    """

    def __init__(self, first: View, config_of: Callable[[View], str], *, local_sessions: bool) -> None:
        self._first, self._config_of, self._local_sessions = first, config_of, local_sessions
        self._bodies: dict[tuple[int, object], bytes] = {}
        self._requests: dict[object, Request] = {}

    def encoded(self, packet: zab.QuorumPacket, sid: Sid) -> bytes:
        """A packet that server `sid` sends."""
        match packet:
            case zab.FollowerInfo():
                return wire.encode_packet(wire.Registration(packet, sid))
            case zab.NewLeader(view=view):
                return wire.encode_packet(wire.LeaderConfig(packet, self._config_of(view or self._first)))
            case zab.Proposal(txn=txn):
                return wire.encode_proposal(txn.zxid, self._body(txn))
            case zab.Inform(txn=txn):
                return encode_raw(Packet(PacketType.INFORM, txn.zxid, self._body(txn)))
            case zab.InformAndActivate(txn=txn, designated=designated):
                data = wire.SID.pack(designated) + self._body(txn)
                return encode_raw(Packet(PacketType.INFORMANDACTIVATE, txn.zxid, data))
            case zab.QuorumRequest(value=value):
                return wire.encode_packet(zab.QuorumRequest(self._request(sid, value)))
            case zab.SyncRequest():
                request = Request(sid << 56 | 1, MANY, Sync("/"), CLIENT)
                return wire.encode_packet(wire.ForwardedSync(request))
            case zab.QuorumPing():
                return wire.encode_packet(wire.PingPacket(0))
            case zab.Snap(zxid=zxid, txns=txns):
                return wire.encode_packet(packet) + b"".join(body_chunks(self._tree(txns or ()), zxid)) + SIGNATURE
        return wire.encode_packet(packet)

    def modelled(self, packet: Packet) -> zab.QuorumPacket | None:
        """The packet of the model; None for one that the model does not have. Raises JuteError."""
        match wire.decode_packet(packet):
            case wire.Registration(packet=info):
                return info
            case wire.LeaderConfig(packet=zab.NewLeader(epoch=epoch, view=view)):
                return zab.NewLeader(epoch, view and _plain(view))
            case zab.Proposal(txn=txn):
                modelled = Txn(txn.zxid, _value(txn))
                self._bodies[txn.zxid, modelled.value] = packet.data or b""
                return zab.Proposal(modelled)
            case zab.Inform(txn=txn):
                return zab.Inform(Txn(txn.zxid, _value(txn)))
            case zab.InformAndActivate(txn=txn, designated=designated):
                return zab.InformAndActivate(Txn(txn.zxid, _value(txn)), designated)
            case zab.QuorumRequest(value=Request() as request):
                value = _number(request.record.path) if isinstance(request.record, Create) else None
                self._requests[value] = request
                return zab.QuorumRequest(value)
            case wire.ForwardedSync():
                return zab.SyncRequest()
            case wire.PingPacket() | wire.RevalidateRequest() | wire.RevalidateReply():
                return None
            case zab.QuorumPacket() as message:
                return message
        return None

    def _body(self, txn: Txn) -> bytes:
        body = self._bodies.get((txn.zxid, txn.value))
        if body is None:
            change, request = self._change(txn), self._requests.get(txn.value)
            if request is not None and isinstance(request.record, Create) and isinstance(change.record, CreateTxn):
                change = Change(request.session, request.cxid, 0, change.record)
            body = self._bodies[txn.zxid, txn.value] = encode_txn(txn.zxid, change)
        return body

    def _change(self, txn: Txn) -> Change:
        if not isinstance(txn.value, Reconfiguration):
            return creation_of(txn)
        return Change(0, 0, 0, ReconfigTxn(CONFIG, self._config_of(txn.value.view).encode(), NO_CVERSION))

    def _request(self, sid: Sid, value: object) -> Request:
        """The request of a client of server `sid`."""
        number = value if isinstance(value, int) else 0
        if not self._local_sessions:
            return Request(sid << 56 | number, 0, CreateSession(SESSION_MILLISECONDS), CLIENT)
        return Request(sid << 56 | 1, number, Create(path_of(0, value), b"", OPEN_ACL_UNSAFE, 0), CLIENT)

    def _tree(self, txns: tuple[Txn, ...]) -> Tree:
        tree = Tree()
        for txn in txns:
            tree.carry_out(apply(tree, txn.zxid, decode_txn(self._body(txn))[1]).operations)
        return tree


def _plain(view: View) -> View:
    """A view without its text and its ports, as the model has it."""
    return majority_view(view.voters, view.observers, view.version)


def _value(txn: Txn) -> object:
    """The value of a transaction in the model: a new view, the number of a write, or else the zxid."""
    if isinstance(txn.value, Reconfiguration):
        return Reconfiguration(_plain(txn.value.view))
    record = txn.value.record if isinstance(txn.value, Change) else None
    if isinstance(record, CreateSessionTxn):
        return txn.value.session % MANY
    if not isinstance(record, CreateTxn):
        return repr(record)
    return format_zxid(txn.zxid) if record.path == path_of(txn.zxid, None) else _number(record.path)


def _number(path: str) -> object:
    number = integer(path.removeprefix(PREFIX), 0, MANY) if path.startswith(PREFIX) else None
    return path if number is None else number
