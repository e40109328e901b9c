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
    - `sasl`: identities of the scheme sasl may stand in ACLs (`zookeeper.authProvider.N`).
    - `super_users`: the users of SASL with all permissions (`zookeeper.superUser`, `zookeeper.superUser.N`).
    - `any_sasl_user`: the name in an ACL that stands for every user of SASL (`zookeeper.letAnySaslUserDoX`), or empty.
    - `enforce_quota`: a write that exceeds a hard limit is refused (`zookeeper.enforceQuota`).
    - `max_multi_read`: the most bytes in the answer to a multiRead, 0 for no bound. ZooKeeper has no bound: 36 KB of
      requests make an answer of 2 GB.
    """

    extended_types: bool = False
    skip_acl: bool = False
    super_digest: str = ""
    exists_needs_read: bool = False
    max_multi_read: int = 0
    enforce_quota: bool = False
    sasl: bool = False
    super_users: frozenset[str] = frozenset()
    any_sasl_user: str = ""


DEFAULTS = Options()
