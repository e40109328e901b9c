"""A named case: a short fixed script of commands about one area of the client protocol.

Rules of this module and of the modules with the cases:

- A case asks for one thing. Its name says what, and the expected answers are those of the specification.
- No case is known to damage a server: `check` outside a multi, and createTTL of a plain znode with a time to live of
  -1, stop real servers of 3.8 (docs/explanation-node.md), and are never sent.
- The znodes of a case can be deleted afterwards: an ACL that takes DELETE or ADMIN away from a znode with children has
  the entry `CLEANER`.

Source: `ZooDefs.OpCode`; ZooKeeper Programmer's Guide.
"""

from collections.abc import Collection
from typing import NamedTuple

from harness import commands as c

SECRET = b"anna:secret"
ANNA = "anna:Wap/fLaD11BLJBT+7fkDcVxaT7c="
"""The identity of `SECRET`: the name, and base64 of the SHA-1 of name and password (`DigestAuthenticationProvider`)."""
CLEANER: c.AclEntry = (31, "digest", ANNA)
READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16
LONG = 1_000_000
"""A time to live in milliseconds that ends after every run."""


class Case(NamedTuple):
    """A named script. With `exact` the zxid in each reply is compared too, relative to the root's.

    A `verbatim` script is about an opcode itself, and never translated into older opcodes.
    """

    area: str
    name: str
    script: c.Script
    exact: bool = False
    verbatim: bool = False


def node(path: str, flags: int = c.PERSISTENT, who: int = 0, acl: c.Acl | None = c.OPEN, data: bytes = b"") -> c.Create:
    """A create2 of a znode."""
    return c.Create(who, path, data=data, acl=acl, flags=flags, by=c.CREATE2)


def container(path: str, flags: int = c.CONTAINER) -> c.Create:
    """Create a container."""
    return c.Create(0, path, flags=flags, by=c.CREATE_CONTAINER)


def lasting(path: str, ttl: int, flags: int = c.TTL) -> c.Create:
    """Create a znode with a time to live in milliseconds."""
    return c.Create(0, path, flags=flags, by=c.CREATE_TTL, ttl=ttl)


def area(name: str, verbatim: Collection[str] = (), **scripts: tuple[c.Command, ...]) -> tuple[Case, ...]:
    """The cases of an area; a case has the name of its argument, with spaces. `verbatim` are such arguments."""
    return tuple(
        Case(name, case.replace("_", " "), script, verbatim=case in verbatim) for case, script in scripts.items()
    )
