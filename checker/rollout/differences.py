"""The keys that differ between the files of a server before and after a roll-out, and their effect on the verdict.

    Effect.MODELLED    members, roles, quorums, versions and peer addresses: the verdict is about these
    Effect.HARMLESS    client ports, session limits, ticks, metrics: the model has the same runs for each value
    Effect.DISK        a server with another data directory may start with an empty disk
    Effect.UNKNOWN     a key without a counterpart in the specification: not modelled, so it withholds SAFE

Rules of this module:

- Values are compared as `java.util.Properties` reads them. Comments, blanks and the order of lines make no difference,
  nor does it matter whether a line is in the static or in the dynamic file.
- A key is HARMLESS only if `HARMLESS` or `HARMLESS_PREFIXES` lists it. ZooKeeper turns every key that it does not know
  into a system property (`QuorumPeerConfig.parseProperties`), so an unlisted key may change anything.
- The value of a key that names a password is not repeated.
- The model lets each time-out occur at any time, so the length of a tick has no effect on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from checker.rollout.folders import ServerFiles
from spec.config import Config, ConfigError, parse_zoo_cfg
from spec.config.ensemble import is_ensemble_key
from spec.config.problems import WHITE, Findings, Problem
from spec.config.properties import read_properties
from spec.quorum import Sid


class Effect(Enum):
    """The effect of a key on the verdict, in words."""

    MODELLED = "modelled"
    HARMLESS = "no effect on the model"
    DISK = "not modelled: the disk is empty, unless the data is moved first"
    UNKNOWN = "not modelled"


MODELLED = frozenset({"standaloneEnabled", "reconfigEnabled", "version", "quorumListenOnAllIPs"})
HARMLESS = frozenset(
    {
        *("tickTime", "initLimit", "syncLimit", "minSessionTimeout", "maxSessionTimeout"),
        *("clientPort", "clientPortAddress", "secureClientPort", "secureClientPortAddress", "clientPortListenBacklog"),
        *("maxClientCnxns", "maxCnxns", "globalOutstandingLimit", "4lw.commands.whitelist"),
        *("peerType", "electionAlg"),  # the server list overrides peerType; electionAlg can be nothing but 3
    }
)
HARMLESS_PREFIXES = ("autopurge.", "admin.", "metricsProvider.", "jvm.pause.")
SECRET = re.compile("passw|secret", re.IGNORECASE)
HIDDEN = "(hidden)"
DISK = frozenset({"dataDir", "dataLogDir"})


@dataclass(frozen=True)
class Difference:
    """A key of one server's configuration with its value before and after; None: the key is not set."""

    sid: Sid
    key: str
    old: str | None
    new: str | None
    effect: Effect


def differences(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> tuple[Difference, ...]:
    """Every key that differs, by server and in the order of the keys, for the servers that both states have."""
    return tuple(each for sid in sorted(old.keys() & new.keys()) for each in _of_server(sid, old[sid], new[sid]))


def settings(given: ServerFiles) -> dict[str, str]:
    """The keys of a server's files with their values; of a repeated key the last value counts."""
    texts = (given.text, given.dynamic or "")
    found = (prop for text in texts for prop in read_properties(text, given.origin, Findings()))
    return {prop.key.strip(WHITE): prop.value.strip(WHITE) for prop in found}


def check_startable(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> None:
    """Raises ConfigError where ZooKeeper starts a server with its old file and refuses its new one.

    The file of a new server is refused where all old files are accepted. Files that lack something before and after, as
    excerpts do, are accepted.
    """
    incomplete = {sid for sid, given in old.items() if _refusal(given)}
    problems = [
        problem
        for sid, given in sorted(new.items())
        if (sid not in incomplete if sid in old else not incomplete)
        for problem in _refusal(given)
    ]
    if problems:
        raise ConfigError(tuple(dict.fromkeys(problems)))


def _refusal(given: ServerFiles) -> tuple[Problem, ...]:
    dynamic = {given.config.dynamic_config_file or "": given.dynamic or ""}
    try:
        parse_zoo_cfg(given.text, given.origin, f"{given.sid}\n", dynamic.get)
    except ConfigError as error:
        return error.problems
    return ()


def _of_server(sid: Sid, old: ServerFiles, new: ServerFiles) -> Iterator[Difference]:
    before, after = settings(old), settings(new)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            effect = _effect(key, old.config, new.config)
            yield Difference(sid, key, shown(key, before.get(key)), shown(key, after.get(key)), effect)


def shown(key: str, value: str | None) -> str | None:
    """The value of a key for a report; that of a password is hidden."""
    return HIDDEN if value is not None and SECRET.search(key) else value


def _effect(key: str, old: Config, new: Config) -> Effect:
    if key.startswith("server."):
        return Effect.HARMLESS if _same_peer(key, old, new) else Effect.MODELLED
    if key == "dynamicConfigFile":  # its lines are compared one by one; its name states the version
        return Effect.HARMLESS if old.version == new.version else Effect.MODELLED
    if key in MODELLED or is_ensemble_key(key):
        return Effect.MODELLED
    if key in DISK:
        return Effect.DISK
    harmless = key in HARMLESS or key.startswith(HARMLESS_PREFIXES)
    return Effect.HARMLESS if harmless else Effect.UNKNOWN


def _same_peer(key: str, old: Config, new: Config) -> bool:
    """Whether two `server.N` lines differ in nothing but their client ports."""
    one, other = (next((each for each in it.servers if key == f"server.{each.sid}"), None) for it in (old, new))
    if one is None or other is None:
        return False
    return (one.addresses, one.learner_type) == (other.addresses, other.learner_type)
