"""The keys that differ between the files of a server before and after a roll-out, and their effect on the verdict.

    Effect.MODELLED    members, roles, quorums, versions and peer addresses: the verdict is about these
    other effects      those of `checker.rollout.files.keys`

Rules of this module:

- Values are compared as `java.util.Properties` reads them. Comments, blanks and the order of lines make no difference,
  nor does it matter whether a line is in the static or in the dynamic file.
- A key has an effect by its value and by the whole file: of two `server.N` lines, only other peer addresses count.
  A key or a line with a port for clients counts if the address at which the server listens for clients is another one.
- The value of a key that names a password, or that ZooKeeper does not know, is not repeated (`shown`, `masked`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from checker.command import CommandError, ExitCode
from checker.execution import poll
from checker.rollout.files.keys import (
    CLIENT,
    DURABLE,
    SECURE,
    Effect,
    KeyEffect,
    changed_for_clients,
    conflicts,
    effect_of,
    occupied,
)
from checker.rollout.inputs.folders import ServerFiles, settings
from spec.config import Config, ConfigError, ServerLine, parse_zoo_cfg
from spec.config.ensemble import is_ensemble_key
from spec.config.problems import WHITE, Findings, Problem
from spec.config.properties import read_properties
from spec.quorum import Sid

MODELLED = frozenset({"standaloneEnabled", "reconfigEnabled", "version", "quorumListenOnAllIPs"})
WITHHOLDING = frozenset({Effect.DISK, Effect.UNKNOWN, Effect.NOT_STATED})
"""The effects that no evidence covers: the verdict is not SAFE where a key has one of them."""
BY_VALUE = frozenset({*WITHHOLDING, Effect.PEERS, Effect.DURABILITY, Effect.MODELLED})
"""The effects that depend on the value: a key that one input does not state may have them."""

CLIENT_KEYS = {CLIENT: CLIENT, "clientPortAddress": CLIENT, SECURE: SECURE, "secureClientPortAddress": SECURE}
SAME_ADDRESS = KeyEffect(Effect.LOCAL, "the same address, written in another way")

SECRET = re.compile("passw|passphrase|secret|superdigest", re.IGNORECASE)
SECRET_COMMENT = re.compile(r"^([ \t\f]*[#!][^=:]*(?:passw|passphrase|secret|superdigest)[^=:]*[=:]).*", re.IGNORECASE)
HIDDEN = "(hidden)"
NOT_STATED = "(not stated)"
MEANINGS: Mapping[str, Callable[[Config], object]] = {
    "reconfigEnabled": lambda config: config.reconfig_enabled,
    "standaloneEnabled": lambda config: config.standalone_enabled,
    "quorumListenOnAllIPs": lambda config: config.listens_on_all_ips,
    "version": lambda config: config.version,
    "dataDir": lambda config: PurePosixPath(config.data_dir or ""),
    "dataLogDir": lambda config: PurePosixPath(config.data_log_dir or ""),
}
"""The meaning of the value of a key; its notation makes no difference."""


@dataclass(frozen=True)
class Difference:
    """A key of one server's configuration with its value before and after; None: the key is not set."""

    sid: Sid
    key: str
    old: str | None
    new: str | None
    effect: Effect
    note: str = ""


def differences(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> tuple[Difference, ...]:
    """Every key that differs, by server and in the order of the keys, for the servers that both states have."""
    clients, sids = changed_for_clients(old, new), sorted(old.keys() & new.keys())
    return tuple(diff for sid in sids for diff in _of_server(old[sid], new[sid], clients))


def check_startable(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> None:
    """Raises ConfigError where a server can start with its old file, and not with its new one.

    ZooKeeper refuses the new file, or the server cannot listen on its ports: another server may have one of them.
    The file of a new server is refused where all old files are accepted. Files that lack something before and after, as
    excerpts do, are accepted.
    """
    incomplete = {sid for sid, files in old.items() if _refusal(files)}
    sids = (sid for sid in sorted(new) if (sid not in incomplete if sid in old else not incomplete))
    if problems := [problem for sid in sids for problem in _refusal(new[sid])] or list(occupied(old, new)):
        raise ConfigError(tuple(dict.fromkeys(problems)))


def check_identities(old: Mapping[Sid, ServerFiles], new: Mapping[Sid, ServerFiles]) -> None:
    """Raises ConfigError where a machine takes the id of another one.

    The id counts votes and acknowledgements, and the disk under it is then that of another server.
    """
    before, after = _machines(old), _machines(new)
    problems = []
    for machine, sid in after.items():
        if (former := before.get(machine, sid)) != sid and sid in old:
            problem = f"{machine} was server {former} and becomes server {sid}, which was that of {old[sid].origin}"
            lost = f"what server {sid} has acknowledged, and the epoch that it has accepted, are not on this disk"
            right = f"keep the id {former}; if the data moves with the id, give the folders the ids as names"
            problems.append(Problem(new[sid].origin, 0, f"{problem}: {lost}", right))
    if problems:
        raise ConfigError(tuple(problems))


def _machines(servers: Mapping[Sid, ServerFiles]) -> dict[str, Sid]:
    """The server of each folder by the folder's name; nothing where the servers have no folders of their own."""
    machines = {PurePosixPath(files.origin).parent.name: sid for sid, files in servers.items()}
    return machines if len(machines) == len(servers) else {}


def _refusal(given: ServerFiles) -> tuple[Problem, ...]:
    poll()
    dynamic = {given.config.dynamic_config_file or "": given.dynamic or ""}
    try:
        parse_zoo_cfg(given.text, given.origin, f"{given.sid}\n", dynamic.get)
    except ConfigError as error:
        return error.problems
    return tuple(conflicts(given))


def _of_server(old: ServerFiles, new: ServerFiles, clients: frozenset[tuple[Sid, str]]) -> Iterator[Difference]:
    for key in _differing(old, new):
        effect, note = _effect(key, old, new, clients)
        if not (old.states(key) and new.states(key)) and (effect in BY_VALUE or key in DURABLE):
            effect, note = Effect.NOT_STATED, "one input does not state it, so it may change: compare the values"
        before, after = (
            shown(key, settings(files).get(key)) if files.states(key) else NOT_STATED for files in (old, new)
        )
        yield Difference(new.sid, key, before, after, effect, note)


def _differing(old: ServerFiles, new: ServerFiles) -> list[str]:
    """The keys with different values, in order.

    Where an input does not state every key, its lines are not those of a file: then a key without an effect makes no
    difference, nor does a value that is written in another way, or left out because it is the default.
    """
    if (old.text, old.dynamic) == (new.text, new.dynamic):
        return []
    before, after = settings(old), settings(new)
    keys = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    if old.told is None and new.told is None:
        return keys
    return [key for key in keys if not _same_effect(key, old, new)]


def _same_effect(key: str, old: ServerFiles, new: ServerFiles) -> bool:
    """Whether two values of a key mean the same, or have no effect on who votes and on what is kept."""
    if key == "standaloneEnabled" and all(len(files.view.voters) > 1 for files in (old, new)):
        return True
    if key in MEANINGS:
        return MEANINGS[key](old.config) == MEANINGS[key](new.config)
    return key not in DURABLE and _effect(key, old, new, frozenset()).effect not in BY_VALUE


def same_files(one: ServerFiles | None, other: ServerFiles | None) -> bool:
    """Whether two files of a server are equal, key by key, as far as their inputs state the keys."""
    return one is other if one is None or other is None else not _unequal(one, other)


def same_effect(one: ServerFiles, other: ServerFiles) -> bool:
    """Whether two files of a server differ in no key on which a verdict depends."""
    return all(_same_effect(key, one, other) for key in _differing(one, other))


def _unequal(one: ServerFiles, other: ServerFiles) -> list[str]:
    return [key for key in _differing(one, other) if one.states(key) and other.states(key)]


def shown(key: str, value: str | None) -> str | None:
    """The value of a key for a report; that of a password is hidden."""
    return HIDDEN if value is not None and _is_secret(key) else value


def _is_secret(key: str) -> bool:
    """Whether a value may be a password: by the name of its key, or because the name may be a misspelt one."""
    modelled = key in (*MODELLED, "dynamicConfigFile") or is_ensemble_key(key)
    return bool(SECRET.search(key)) or (not modelled and effect_of(key, None).effect is Effect.UNKNOWN)


def masked(text: str) -> str:
    """The text of a configuration file with the values of passwords hidden, in comments too."""
    props = read_properties(text, "", Findings())
    secret = {prop.line: prop.key for prop in props if _is_secret(prop.key.strip(WHITE))}
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    shown_lines, continued = list[str](), False
    for number, line in enumerate(lines, start=1):
        if not continued:
            hidden = number in secret
            shown_lines.append(f"{secret[number]}={HIDDEN}" if hidden else SECRET_COMMENT.sub(rf"\1{HIDDEN}", line))
        continued = hidden and (len(line) - len(line.rstrip("\\"))) % 2 == 1
    return text if shown_lines == lines else "\n".join(shown_lines)


def _effect(key: str, old: ServerFiles, new: ServerFiles, clients: frozenset[tuple[Sid, str]]) -> KeyEffect:
    before, after = _line(key, old.config), _line(key, new.config)
    peers = [line and (line.addresses, line.learner_type) for line in (before, after)]
    same_peer = before is not None and peers[0] == peers[1]
    modelled = key in MODELLED or is_ensemble_key(key)
    if modelled and old.config.effective_view.standalone and new.config.effective_view.standalone:
        # A standalone server looks at no other server, but its line names its host.
        return KeyEffect(Effect.MODELLED if before and after and not same_peer else Effect.LOCAL)
    if before and after and same_peer:
        moved = (before.sid, CLIENT) in clients or before.secure_client != after.secure_client
        return effect_of(CLIENT, None) if moved else SAME_ADDRESS
    if key in CLIENT_KEYS and (new.sid, CLIENT_KEYS[key]) not in clients:
        return SAME_ADDRESS
    if key == "dynamicConfigFile":  # its lines are compared one by one; its name states the version
        return KeyEffect(Effect.LOCAL if old.config.version == new.config.version else Effect.MODELLED)
    return KeyEffect(Effect.MODELLED) if modelled else effect_of(key, settings(new).get(key))


def _line(key: str, config: Config) -> ServerLine | None:
    return next((line for line in config.servers if key == f"server.{line.sid}"), None)


class UnfitStateError(CommandError, ConfigError):
    """A state from which no roll-out goes on, before the advice of its diagnosis is followed."""

    exit_code = ExitCode.INCOMPLETE


@dataclass(frozen=True)
class Interruption:
    """The state of a roll-out under way.

    `applied` are the servers that have their new files, or are stopped because the new state does not have them. A
    server whose old and new file are equal counts as one that has its new file. `path` is the input, and `taken` states
    what was read of each server; `leader` leads now, if that is known. Nothing shows whether the `unseen` servers run,
    nor with which file the `unstated` ones do. Those that are `looking` find no leader by their files.
    """

    path: str
    applied: frozenset[Sid]
    taken: tuple[str, ...]
    leader: Sid | None = None
    unseen: frozenset[Sid] = frozenset()
    looking: frozenset[Sid] = frozenset()
    unstated: frozenset[Sid] = frozenset()


def different_value(files: ServerFiles, right: ServerFiles) -> str:
    """The first key with another value in one of two files of a server, with both values."""
    key = _unequal(files, right)[0]
    values = (shown(key, settings(side).get(key)) for side in (files, right))
    value_here, value_there = ("not set" if value is None else repr(value) for value in values)
    return f"{key} is {value_here}, and {value_there} in {right.origin}"
