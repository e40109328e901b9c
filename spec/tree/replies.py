"""The replies to clients: a record for each kind (module `org.apache.zookeeper.proto`), and the error codes."""

import enum

from spec.tree.data import Acl, Buffer, ClientInfo, Int, Record, Stat, Ustring


class Code(enum.IntEnum):
    """The error codes (`KeeperException.Code`)."""

    OK = 0
    SYSTEM_ERROR = -1
    RUNTIME_INCONSISTENCY = -2
    DATA_INCONSISTENCY = -3
    CONNECTION_LOSS = -4
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    OPERATION_TIMEOUT = -7
    BAD_ARGUMENTS = -8
    NEW_CONFIG_NO_QUORUM = -13
    RECONFIG_IN_PROGRESS = -14
    UNKNOWN_SESSION = -12
    API_ERROR = -100
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_CALLBACK = -113
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_MOVED = -118
    NOT_READONLY = -119
    EPHEMERAL_ON_LOCAL_SESSION = -120
    NO_WATCHER = -121
    REQUEST_TIMEOUT = -122
    RECONFIG_DISABLED = -123
    SESSION_CLOSED_REQUIRE_SASL_AUTH = -124
    QUOTA_EXCEEDED = -125
    THROTTLED_OP = -127


class PathReply(Record, frozen=True, gc=False):
    """The reply to create and to sync (`CreateResponse`, `SyncResponse`)."""

    path: Ustring


class Create2Reply(Record, frozen=True, gc=False):
    """The reply to create2, createContainer and createTTL."""

    path: Ustring
    stat: Stat


class StatReply(Record, frozen=True, gc=False):
    """The reply to exists, setData and setACL."""

    stat: Stat


class DataReply(Record, frozen=True, gc=False):
    """The reply to getData."""

    data: Buffer
    stat: Stat


class ChildrenReply(Record, frozen=True, gc=False):
    """The reply to getChildren."""

    children: tuple[Ustring, ...]


class Children2Reply(Record, frozen=True, gc=False):
    """The reply to getChildren2."""

    children: tuple[Ustring, ...]
    stat: Stat


class AclReply(Record, frozen=True, gc=False):
    """The reply to getACL."""

    acl: tuple[Acl, ...]
    stat: Stat


class NumberReply(Record, frozen=True, gc=False):
    """The reply to getAllChildrenNumber."""

    total_number: Int


class EphemeralsReply(Record, frozen=True, gc=False):
    """The reply to getEphemerals."""

    ephemerals: tuple[Ustring, ...]


class WhoAmIReply(Record, frozen=True, gc=False):
    """The reply to whoAmI."""

    client_info: tuple[ClientInfo, ...]


class MultiReply(Record, frozen=True, gc=False):
    """The reply to multi and multiRead: a result for each operation, in their order."""

    results: tuple["OperationResult", ...]


class ErrorReply(Record, frozen=True, gc=False):
    """The result of one operation that failed or was not carried out.

    In a failed multi, OK marks an operation before the failed one, and RUNTIME_INCONSISTENCY one after it.
    """

    err: Int


class OperationResult(Record, frozen=True, gc=False):
    """The result of one operation of a multi: its opcode (-1 for an error) and its record, None if it has no record."""

    type: Int
    record: Record | None


class SaslReply(Record, frozen=True, gc=False):
    """The reply to sasl (`SetSASLResponse`): the token of the server, None if it has none."""

    token: Buffer


class WatcherEvent(Record, frozen=True, gc=False):
    """The notification of a fired watch: the event's type (`Watcher.Event.EventType`), the client's state, the path."""

    type: Int
    state: Int
    path: Ustring
