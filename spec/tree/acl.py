"""Access control lists, and the identities that a connection can prove.

Rules of this module:

- An operation is forbidden unless an entry allows it, but an empty list forbids nothing.
- The schemes are world, auth, digest and ip, and sasl where the operator allows it (`Options.sasl`).
- An ACL is kept with `auth` replaced by the identities of its author, so that its meaning does not change later.
- The identity `super` passes every ACL. A connection gains it with the password of `Options.super_digest`, or as one of
  `Options.super_users`.

Source: `PrepRequestProcessor.fixupACL`; `ZooKeeperServer.checkACL`; `DigestAuthenticationProvider`,
`IPAuthenticationProvider`, `SASLAuthenticationProvider`; `AuthUtil.getClientInfos`; `FinalRequestProcessor` (getACL)
for hidden digests.
"""

import base64
import hashlib
import re

from spec.text import integer, integers
from spec.tree.data import ANYONE, OPEN_ACL_UNSAFE, Acl, ClientInfo, Id
from spec.tree.options import DEFAULTS, Options

_KERBEROS = re.compile(r"[^/@]*(?:/[^/@]*)?@[^/@]*").fullmatch
_WORDS_OF_IP = 4
_BITS_OF_IP = 32


def permits(acl: tuple[Acl, ...], perms: int, auth: tuple[Id, ...], options: Options = DEFAULTS) -> bool:
    """Whether a client with these identities may do any of `perms` (`ZooKeeperServer.checkACL`)."""
    if acl is OPEN_ACL_UNSAFE or not acl or options.skip_acl:
        return True
    bits = int(perms)  # the operators of an IntFlag are slow
    allowed = [entry.id for entry in acl if entry.perms & bits]
    if ANYONE in allowed or any(identity.scheme == "super" for identity in auth):
        return True
    return any(_matches(identity, entry_id, options) for entry_id in allowed for identity in auth)


def _matches(identity: Id, wanted: Id, options: Options) -> bool:
    if identity.scheme != wanted.scheme:
        return False
    if wanted.scheme == "digest":
        return identity.id == wanted.id
    if wanted.scheme == "sasl":
        return options.sasl and (identity.id in ("super", wanted.id) or options.any_sasl_user == wanted.id != "")
    return wanted.scheme == "ip" and _ip_matches(identity.id, wanted.id)


MAX_ENTRIES = 1 << 16
"""The largest ACL that is kept. Every `auth` entry expands to all digest identities, so an ACL can grow."""


def fix_up(acl: tuple[Acl, ...], auth: tuple[Id, ...], options: Options = DEFAULTS) -> tuple[Acl, ...] | None:
    """The ACL to keep, None if it is not valid (`PrepRequestProcessor.fixupACL`)."""
    if acl == OPEN_ACL_UNSAFE:
        return OPEN_ACL_UNSAFE
    proved = ("digest", "sasl") if options.sasl else ("digest",)
    fixed: list[Acl] = []
    for entry in dict.fromkeys(acl):
        if entry.id == ANYONE or _is_valid(entry.id, options):
            fixed.append(entry)
        elif entry.id.scheme == "auth" and any(identity.scheme in proved for identity in auth):
            fixed.extend(Acl(entry.perms, identity) for identity in auth if identity.scheme in proved)
        else:
            return None
        if len(fixed) > MAX_ENTRIES:
            return None
    return tuple(fixed) or None


def _is_valid(identity: Id, options: Options) -> bool:
    if identity.scheme == "sasl" and not options.sasl:
        return False
    return identity.scheme in _VALID and _VALID[identity.scheme](identity.id)


def hide_digests(acl: tuple[Acl, ...]) -> tuple[Acl, ...]:
    """The ACL as readers without ADMIN see it: without the hashes of passwords."""
    return tuple(
        Acl(entry.perms, Id("digest", re.sub(":.*", ":x", entry.id.id))) if entry.id.scheme == "digest" else entry
        for entry in acl
    )


def authenticate(scheme: str, auth: bytes | None, address: str, options: Options = DEFAULTS) -> tuple[Id, ...] | None:
    """The identities that a connection from `address` gains by this proof, or None if the proof is not accepted."""
    if scheme == "ip":
        return (Id("ip", address),)
    if scheme != "digest" or auth is None:
        return None
    digest = digest_of(auth.decode("utf-8", "replace"))
    gained = Id("digest", digest)
    return (Id("super", ""), gained) if digest == options.super_digest else (gained,)


def sasl_identities(user: str, options: Options) -> tuple[Id, ...]:
    """The identities of a user whom SASL has authenticated (`ZooKeeperServer.processSasl`)."""
    gained = Id("sasl", user)
    return (gained, Id("super", "")) if user in options.super_users else (gained,)


def is_valid_name(user: str) -> bool:
    """Whether a name may stand in an ACL of the scheme sasl: as names of Kerberos are (`KerberosName`)."""
    return "@" not in user or _KERBEROS(user) is not None


def digest_of(name_and_password: str) -> str:
    """`name:hash` of `name:password` (`DigestAuthenticationProvider.generateDigest`)."""
    name = name_and_password.partition(":")[0]
    return (
        f"{name}:{base64.b64encode(hashlib.sha1(name_and_password.encode(), usedforsecurity=False).digest()).decode()}"
    )


def client_info(auth: tuple[Id, ...]) -> tuple[ClientInfo, ...]:
    """The reply of whoAmI for these identities."""
    return tuple(ClientInfo(identity.scheme, _user(identity)) for identity in auth)


def _user(identity: Id) -> str:
    if identity.scheme == "digest":
        return identity.id.partition(":")[0]
    return identity.id if identity.scheme in ("ip", "sasl") else ""


def _digest_valid(identity: str) -> bool:
    # Two parts, as Java splits: trailing empty parts do not count.
    return identity.rstrip(":").count(":") == 1


def _ip_valid(expression: str) -> bool:
    return _network(expression) is not None


def _ip_matches(address: str, expression: str) -> bool:
    network, number = _network(expression), _ip_number(address)
    if network is None or number is None:
        return False
    first, bits = network
    return (first ^ number) >> (_BITS_OF_IP - bits) == 0


def _network(expression: str) -> tuple[int, int] | None:
    """An IPv4 address and its number of significant bits; ZooKeeper supports no other addresses."""
    address, slash, length = expression.partition("/")
    number = _ip_number(address)
    bits = integer(length, 0, _BITS_OF_IP) if slash else _BITS_OF_IP
    return None if number is None or bits is None else (number, bits)


def _ip_number(address: str) -> int | None:
    words = integers(address.split("."), 0, 255)
    return None if words is None or len(words) != _WORDS_OF_IP else int.from_bytes(words)


_VALID = {"digest": _digest_valid, "ip": _ip_valid, "sasl": is_valid_name}
