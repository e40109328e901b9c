"""The requests of clients: a record for each opcode (module `org.apache.zookeeper.proto`).

Rules of this module:

- One class for each request. Two opcodes with the same body (for example create and create2) have two classes, so that
  the type alone identifies the request.
- `OPCODES` is the only table of opcodes.

Source: `ZooDefs.OpCode`, `zookeeper.jute`, `MultiOperationRecord`.
"""

import enum
from typing import TypeAlias

import msgspec

from spec.tree.data import Acl, Boolean, Buffer, Id, Int, Long, Record, Ustring


class CreateMode(enum.IntEnum):
    """The flags of a create (`CreateMode`)."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3
    CONTAINER = 4
    PERSISTENT_WITH_TTL = 5
    PERSISTENT_SEQUENTIAL_WITH_TTL = 6


class Create(Record, frozen=True, gc=False):
    """Create a znode; the reply is its path."""

    path: Ustring
    data: Buffer
    acl: tuple[Acl, ...]
    flags: Int


class Create2(Create, frozen=True, gc=False):
    """Create a znode; the reply also contains its Stat."""


class CreateContainer(Create, frozen=True, gc=False):
    """Create a container znode; the reply is that of Create2."""


class CreateTtl(Record, frozen=True, gc=False):
    """Create a znode that is deleted once it has no children and was not changed for `ttl` milliseconds."""

    path: Ustring
    data: Buffer
    acl: tuple[Acl, ...]
    flags: Int
    ttl: Long


class Delete(Record, frozen=True, gc=False):
    """Delete a znode without children; version -1 matches any."""

    path: Ustring
    version: Int


class DeleteContainer(Record, frozen=True, gc=False):
    """Delete an empty container or an expired TTL znode. Only the servers send this request, never a client.

    Its body is the bare path (`ContainerManager.postDeleteRequest`).
    """

    path: Ustring


class Exists(Record, frozen=True, gc=False):
    """Read the Stat of a znode."""

    path: Ustring
    watch: Boolean


class GetData(Record, frozen=True, gc=False):
    """Read the data and the Stat of a znode."""

    path: Ustring
    watch: Boolean


class SetData(Record, frozen=True, gc=False):
    """Replace the data of a znode; version -1 matches any."""

    path: Ustring
    data: Buffer
    version: Int


class GetAcl(Record, frozen=True, gc=False):
    """Read the ACL of a znode."""

    path: Ustring


class SetAcl(Record, frozen=True, gc=False):
    """Replace the ACL of a znode; `version` is the version of the ACL."""

    path: Ustring
    acl: tuple[Acl, ...]
    version: Int


class GetChildren(Record, frozen=True, gc=False):
    """Read the names of a znode's children."""

    path: Ustring
    watch: Boolean


class GetChildren2(Record, frozen=True, gc=False):
    """Read the names of a znode's children, and its Stat."""

    path: Ustring
    watch: Boolean


class GetAllChildrenNumber(Record, frozen=True, gc=False):
    """Read the number of znodes below this one, at any depth."""

    path: Ustring


class GetEphemerals(Record, frozen=True, gc=False):
    """Read the paths of this session's ephemeral znodes below a path."""

    prefix_path: Ustring


class Sync(Record, frozen=True, gc=False):
    """Wait until this server has applied everything that the leader had committed; the reply is the path."""

    path: Ustring


class Ping(Record, frozen=True, gc=False):
    """Keep the session alive."""


class Check(Record, frozen=True, gc=False):
    """Part of a multi: require that the znode exists and has this version; -1 matches any."""

    path: Ustring
    version: Int


class Multi(Record, frozen=True, gc=False):
    """Execute several writes as one transaction: all of them, or none."""

    operations: tuple[Record, ...]


class MultiRead(Record, frozen=True, gc=False):
    """Execute several reads (getData, getChildren), each with a separate result or error."""

    operations: tuple[Record, ...]


class CheckWatches(Record, frozen=True, gc=False):
    """Check that this connection has a watch of this type (`WatcherType`)."""

    path: Ustring
    type: Int


class RemoveWatches(Record, frozen=True, gc=False):
    """Remove this connection's watches of this type (`WatcherType`)."""

    path: Ustring
    type: Int


class SetAuth(Record, frozen=True, gc=False):
    """Add an identity to this connection."""

    type: Int
    scheme: Ustring
    auth: Buffer


class SetWatches(Record, frozen=True, gc=False):
    """Register the watches of a reconnected client; it immediately receives the events since `relative_zxid`."""

    relative_zxid: Long
    data_watches: tuple[Ustring, ...]
    exist_watches: tuple[Ustring, ...]
    child_watches: tuple[Ustring, ...]


class SetWatches2(Record, frozen=True, gc=False):
    """Register watches like `SetWatches`, including persistent ones."""

    relative_zxid: Long
    data_watches: tuple[Ustring, ...]
    exist_watches: tuple[Ustring, ...]
    child_watches: tuple[Ustring, ...]
    persistent_watches: tuple[Ustring, ...]
    persistent_recursive_watches: tuple[Ustring, ...]


class AddWatch(Record, frozen=True, gc=False):
    """Register a persistent (mode 0) or persistent recursive (mode 1) watch."""

    path: Ustring
    mode: Int


class WhoAmI(Record, frozen=True, gc=False):
    """Read the identities of this connection."""


class Reconfig(Record, frozen=True, gc=False):
    """Change the ensemble's members: by lists of joining and leaving servers, or by all new members.

    `cur_config_id` is the version that the client expects, -1 for any.
    """

    joining_servers: Ustring
    leaving_servers: Ustring
    new_members: Ustring
    cur_config_id: Long


class Sasl(Record, frozen=True, gc=False):
    """Continue the SASL exchange with this token; the reply is the token of the server."""

    token: Buffer


class CreateSession(Record, frozen=True, gc=False):
    """Open a session. A server sends this request on behalf of a connecting client. Its body is the timeout."""

    time_out: Int


class CloseSession(Record, frozen=True, gc=False):
    """End a session and delete its ephemeral znodes; sent by the client, or by the leader after its expiry."""


OPCODES: dict[int, type[Record]] = {
    1: Create,
    2: Delete,
    3: Exists,
    4: GetData,
    5: SetData,
    6: GetAcl,
    7: SetAcl,
    8: GetChildren,
    9: Sync,
    11: Ping,
    12: GetChildren2,
    13: Check,
    14: Multi,
    15: Create2,
    16: Reconfig,
    17: CheckWatches,
    18: RemoveWatches,
    19: CreateContainer,
    20: DeleteContainer,
    21: CreateTtl,
    22: MultiRead,
    100: SetAuth,
    101: SetWatches,
    102: Sasl,
    103: GetEphemerals,
    104: GetAllChildrenNumber,
    105: SetWatches2,
    106: AddWatch,
    107: WhoAmI,
    -10: CreateSession,
    -11: CloseSession,
}
"""The record of each opcode (`ZooDefs.OpCode`)."""

OPCODE_OF: dict[type[Record], int] = {record: opcode for opcode, record in OPCODES.items()}

SessionId: TypeAlias = int
"""64 bits, signed: the server's id in the highest 8, time in the rest; 0 means no session."""


class Request(msgspec.Struct, frozen=True):
    """A request as the leader receives it: the client's session, its number, its record, and the client's identities.

    `cxid` is the xid that the client assigned; `auth` are the identities of the connection.
    """

    session: SessionId
    cxid: int
    record: Record
    auth: tuple[Id, ...] = ()
