"""The keys of zoo.cfg about the authentication of clients.

Rules this module keeps:

- The keys are the system properties of ZooKeeper without `zookeeper.`, and `java.security.auth.login.config`, which a
  server of Java gets on its command line.
- A key that asks for more than this server can do is an error that names the key, the value and the remedy.

Source: `ServerCnxnFactory.configureSaslLogin`; `AuthenticationHelper`; `ProviderRegistry`; `SaslServerCallbackHandler`;
`ZooKeeperServer.isSaslSuperUser`, `shouldAllowSaslFailedClientsConnect`.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from refimpl.clients.auth.jaas import read_users
from spec.config.problems import is_true

JAAS_FILE = "java.security.auth.login.config"
PROVIDER = "authProvider."
SASL_PROVIDER = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
_PROVIDERS = frozenset(
    {
        SASL_PROVIDER,
        "org.apache.zookeeper.server.auth.DigestAuthenticationProvider",
        "org.apache.zookeeper.server.auth.IPAuthenticationProvider",
    }
)
_BUILT_IN = frozenset({"ip", "digest"})


class AuthSettings(msgspec.Struct, frozen=True):
    """The authentication of clients that an operator asks for.

    - `passwords`: those of the users of SASL DIGEST-MD5; None without a JAAS file.
    - `required`: the schemes one of which a client must prove before any other request; empty if none is required.
    - `keeps_failed`: a client whose SASL authentication fails stays connected, unless `required` has sasl.
    """

    passwords: Mapping[str, str] | None = None
    required: frozenset[str] = frozenset()
    keeps_failed: bool = False

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "AuthSettings":
        """The settings in a zoo.cfg. Raises ValueError, with the remedy after a semicolon."""
        for key, value in properties.items():
            if key.startswith(PROVIDER) and value not in _PROVIDERS:
                raise ValueError(f"{key}={value}: no such provider here; write one of {', '.join(sorted(_PROVIDERS))}")
        return cls(
            _passwords(properties),
            _required(properties),
            is_true(properties, "allowSaslFailedClients"),
        )


def has_sasl_provider(properties: Mapping[str, str]) -> bool:
    """Whether ACLs may have the scheme sasl: a key `authProvider.N` names its provider."""
    return any(key.startswith(PROVIDER) and value == SASL_PROVIDER for key, value in properties.items())


def super_users(properties: Mapping[str, str]) -> frozenset[str]:
    """The users of SASL with all permissions: the values of `superUser` and `superUser.N`."""
    return frozenset(
        value for key, value in properties.items() if value and (key == "superUser" or key.startswith("superUser."))
    )


def _passwords(properties: Mapping[str, str]) -> Mapping[str, str] | None:
    file = properties.get(JAAS_FILE)
    section = properties.get("sasl.serverconfig", "Server")
    if file is None:
        if "sasl.serverconfig" in properties:
            raise ValueError(f"sasl.serverconfig={section}: there is no JAAS file; add {JAAS_FILE}=FILE")
        return None
    users = read_users(Path(file), section)
    if "super" in users and "SASLAuthenticationProvider.superPassword" in properties:
        users["super"] = properties["SASLAuthenticationProvider.superPassword"]
    return users


def _required(properties: Mapping[str, str]) -> frozenset[str]:
    if is_true(properties, "sessionRequireClientSASLAuth"):
        key, schemes = "sessionRequireClientSASLAuth=true", frozenset({"sasl"})
    elif is_true(properties, "enforce.auth.enabled"):
        listed = properties.get("enforce.auth.schemes", "")
        key, schemes = f"enforce.auth.schemes={listed}", frozenset(part.strip() for part in listed.split(","))
    else:
        return frozenset()
    known = _BUILT_IN | ({"sasl"} if has_sasl_provider(properties) else frozenset())
    if unknown := sorted(schemes - known):
        remedy = (
            f"add authProvider.1={SASL_PROVIDER}"
            if unknown == ["sasl"]
            else f"write some of {', '.join(sorted(known))}"
        )
        raise ValueError(f"{key}: {unknown[0] or 'an empty name'} is no scheme of this server; {remedy}")
    return schemes
