"""Typed access to the keys of one static file, and notes the values that ZooKeeper refuses.

Rules:

- A value is trimmed first, as `QuorumPeerConfig.parseProperties` does.
- Every key that ZooKeeper reads as a number or as true/false is checked, since the server does not start with another
  value, even where Quorate ignores the key.
- The default replaces an invalid value, so that the rest of the file is checked, too.
- A template such as `${DIR}` is an error in a key that Quorate uses, and a warning in any other.

Source: `QuorumPeerConfig.parseProperties` and `parseBoolean`; the key names of `QuorumAuth` and
`JvmPauseMonitor`.
"""

from collections.abc import Mapping

from spec.config.ensemble import is_ensemble_key
from spec.config.problems import WHITE, Findings, template_in
from spec.config.properties import Property
from spec.text import INT, LONG, integer

INTEGERS = frozenset(
    {
        "clientPort",
        "secureClientPort",
        "observerMasterPort",
        "clientPortListenBacklog",
        "tickTime",
        "maxClientCnxns",
        "minSessionTimeout",
        "maxSessionTimeout",
        "initLimit",
        "syncLimit",
        "connectToLearnerMasterLimit",
        "electionAlg",
        "autopurge.snapRetainCount",
        "quorum.cnxn.threads.size",
        "multiAddress.reachabilityCheckTimeoutMs",
    }
)
LONGS = frozenset({"jvm.pause.info-threshold.ms", "jvm.pause.warn-threshold.ms", "jvm.pause.sleep.time.ms"})
BOOLEANS = frozenset(
    {
        "localSessionsEnabled",
        "localSessionsUpgradingEnabled",
        "quorumListenOnAllIPs",
        "syncEnabled",
        "standaloneEnabled",
        "reconfigEnabled",
        "sslQuorum",
        "portUnification",
        "sslQuorumReloadCertFiles",
        "quorum.auth.enableSasl",
        "quorum.auth.serverRequireSasl",
        "quorum.auth.learnerRequireSasl",
        "jvm.pause.monitor",
        "multiAddress.enabled",
        "multiAddress.reachabilityCheckEnabled",
    }
)
OWN = frozenset(
    {
        "tickTime",
        "initLimit",
        "syncLimit",
        "minSessionTimeout",
        "maxSessionTimeout",
        "dataDir",
        "dataLogDir",
        "clientPort",
        "clientPortAddress",
        "peerType",
        "standaloneEnabled",
        "reconfigEnabled",
        "dynamicConfigFile",
        "version",
    }
)
"""The keys with a field in `Config`; the other keys are copied unchanged."""


class Settings:
    """The trimmed properties of one file; the constructor checks all of them."""

    def __init__(self, properties: Mapping[str, Property], file: str, findings: Findings) -> None:
        self.file = file
        self.findings = findings
        trimmed = (Property(p.key.strip(WHITE), p.value.strip(WHITE), p.line) for p in properties.values())
        self._properties = {prop.key: prop for prop in trimmed}
        for key, prop in self._properties.items():
            self._check_type(key, prop.value)
        self._check_known()

    def get(self, key: str) -> Property | None:
        """Return the line of a key, or None."""
        return self._properties.get(key)

    def text(self, key: str) -> str | None:
        """Return the value of a key, or None if it is not set."""
        prop = self.get(key)
        return prop.value if prop else None

    def integer(self, key: str, default: int) -> int:
        """Return the number of a key, or the default for a missing or an invalid value."""
        number = integer(self.text(key) or "", *INT)
        return default if number is None else number

    def boolean(self, key: str, default: bool) -> bool:
        """Return true or false, ignoring case, or the default for a missing or an invalid value."""
        return {"true": True, "false": False}.get((self.text(key) or "").lower(), default)

    def port(self, key: str) -> int | None:
        """Return the port of a key, or None if it is not set or out of range; the latter is an error."""
        number = self.integer(key, -1)
        if 0 <= number <= 65535:
            return number
        # The constructor has reported values that are not numbers.
        if integer(self.text(key) or "", *INT) is not None:
            self.error(key, f"{number} is not a port", "write a number from 0 to 65535")
        return None

    def others(self) -> tuple[tuple[str, str], ...]:
        """Return the keys without a field in `Config` that are not of the ensemble, in the order of the file."""
        rest = (p for p in self._properties.values() if p.key not in OWN and not is_ensemble_key(p.key))
        return tuple((prop.key, prop.value) for prop in sorted(rest, key=lambda prop: prop.line))

    def error(self, key: str, what: str, right: str) -> None:
        """Add an error at the line of a key, or at line 0 if it is not set."""
        prop = self.get(key)
        self.findings.error(self.file, prop.line if prop else 0, f"{key}: {what}" if prop else what, right)

    def warn(self, key: str, what: str, right: str) -> None:
        """Add a warning at the line of a key."""
        prop = self.get(key)
        self.findings.warn(self.file, prop.line if prop else 0, f"{key}: {what}", right)

    def _check_type(self, key: str, value: str) -> None:
        if (key in INTEGERS and integer(value, *INT) is None) or (key in LONGS and integer(value, *LONG) is None):
            self.error(key, f"{value!r} is not a whole number", "write digits only")
        elif key in BOOLEANS and value.lower() not in ("true", "false"):
            self.error(key, f"{value!r} is neither true nor false", "write true or false")
        elif not is_ensemble_key(key) and (template := template_in(value)) is not None:
            say = self.error if key in OWN else self.warn
            say(key, f"the template {template} is not filled in", "write the value instead of the template")

    def _check_known(self) -> None:
        if self.integer("electionAlg", 3) != 3:
            self.error("electionAlg", "only 3 is supported", "remove the line")
        if self.get("secureClientPortAddress") and not self.get("secureClientPort"):
            self.error("secureClientPortAddress", "set while secureClientPort is not", "add secureClientPort")
        self.port("secureClientPort")
        server, learner = "quorum.auth.serverRequireSasl", "quorum.auth.learnerRequireSasl"
        if not self.boolean("quorum.auth.enableSasl", False):
            for key in (server, learner):
                if self.boolean(key, False):
                    right = "set quorum.auth.enableSasl=true"
                    self.error(key, "true while quorum.auth.enableSasl is not", right)
        elif self.boolean(server, False) and not self.boolean(learner, False):
            self.error(server, f"true while {learner} is not", f"set {learner}=true")
        if self.get("oraclePath"):
            problem = "an oracle can replace a quorum of two servers, and the view does not contain it"
            self.warn("oraclePath", problem, "judge quorums without it")
