"""The operator's settings for the tree, the same on all servers."""

import msgspec


class Options(msgspec.Struct, frozen=True):
    """ZooKeeper's system properties for the tree, with ZooKeeper's defaults.

    - `extended_types`: TTL znodes may be created (`zookeeper.extendedTypesEnabled`).
    - `skip_acl`: access control is off (`zookeeper.skipACL`).
    - `super_digest`: the digest identity with all permissions (`zookeeper.DigestAuthenticationProvider.superDigest`),
      or empty.
    - `exists_needs_read`: exists requires READ, as in later releases (3.8.4, 3.9); 3.8.0 returns the Stat of any znode
      to every client.
    - `max_multi_read`: the most bytes in the answer to a multiRead, 0 for no bound. ZooKeeper has no bound: 36 KB of
      requests make an answer of 2 GB.
    """

    extended_types: bool = False
    skip_acl: bool = False
    super_digest: str = ""
    exists_needs_read: bool = False
    max_multi_read: int = 0


DEFAULTS = Options()
