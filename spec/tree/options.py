"""What an operator may set about the tree of all servers, read by those who decide."""

import msgspec


class Options(msgspec.Struct, frozen=True):
    """ZooKeeper's system properties for the tree; the defaults are its own.

    `extended_types`: TTL znodes may be created (`zookeeper.extendedTypesEnabled`). `skip_acl`: nothing is forbidden
    to anybody (`zookeeper.skipACL`). `super_digest`: the digest identity that may do everything
    (`zookeeper.DigestAuthenticationProvider.superDigest`), empty if there is none. `exists_needs_read`: exists asks
    for READ, as later releases do (3.8.4, 3.9); 3.8.0 tells anybody the Stat of any znode.
    """

    extended_types: bool = False
    skip_acl: bool = False
    super_digest: str = ""
    exists_needs_read: bool = False


DEFAULTS = Options()
