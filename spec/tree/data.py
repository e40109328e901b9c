"""What znodes are described with, on the wire and on disk (module `org.apache.zookeeper.data`)."""

import enum

from spec.tree.fields import Int, Long, Record, Ustring


class Id(Record, frozen=True, gc=False):
    """Whom an ACL entry or an authentication is about: a scheme (`world`, `auth`, `digest`, `ip`) and its own id."""

    scheme: Ustring
    id: Ustring


class Acl(Record, frozen=True, gc=False):
    """One entry of an access control list: what `id` may do."""

    perms: Int
    id: Id


class Perms(enum.IntFlag):
    """What an ACL entry allows (`ZooDefs.Perms`)."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


ANYONE = Id("world", "anyone")
OPEN_ACL_UNSAFE = (Acl(Perms.ALL.value, ANYONE),)
READ_ACL_UNSAFE = (Acl(Perms.READ.value, ANYONE),)


class Stat(Record, frozen=True, gc=False):
    """What clients are told about a znode beside its data."""

    czxid: Long
    mzxid: Long
    ctime: Long
    mtime: Long
    version: Int
    cversion: Int
    aversion: Int
    ephemeral_owner: Long
    data_length: Int
    num_children: Int
    pzxid: Long


class StatPersisted(Record, frozen=True, gc=False):
    """What a snapshot keeps of a znode beside its data and its ACL."""

    czxid: Long
    mzxid: Long
    ctime: Long
    mtime: Long
    version: Int
    cversion: Int
    aversion: Int
    ephemeral_owner: Long
    pzxid: Long


class ClientInfo(Record, frozen=True, gc=False):
    """One of the identities of a client, as whoAmI tells it."""

    auth_scheme: Ustring
    user: Ustring
