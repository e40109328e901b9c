"""The records that describe znodes, on the wire and on disk (module `org.apache.zookeeper.data`)."""

import enum

from spec.tree.fields import Int, Long, Record, Ustring


class Id(Record, frozen=True, gc=False):
    """The subject of an ACL entry or an authentication: a scheme (`world`, `auth`, `digest`, `ip`) and an id in it."""

    scheme: Ustring
    id: Ustring


class Acl(Record, frozen=True, gc=False):
    """One entry of an access control list: the permissions of `id`."""

    perms: Int
    id: Id


class Perms(enum.IntFlag):
    """The permissions of an ACL entry (`ZooDefs.Perms`)."""

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
    """The metadata of a znode that clients see."""

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
    """The metadata of a znode in a snapshot, which also contains its data and its ACL."""

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
    """One of the identities of a client, in the reply of whoAmI."""

    auth_scheme: Ustring
    user: Ustring
