"""The state of an interrupted roll-out: which servers have their new files already.

    read_now(path, old, new) -> Now

Rules of this module:

- The folder has the files that the servers run with. Each file equals the old or the new file of its server, compared
  key by key, so comments and blanks make no difference. Any other file is an error with its server and key.
- A new server without a file is not started yet. A server that goes and has no file is stopped.
- A server whose old and new file are equal needs no step. It counts as one that has its new file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checker.rollout.differences import settings, shown
from checker.rollout.folders import Folder, ServerFiles, read_mixed_folder
from spec.config import ConfigError, Problem
from spec.quorum import Sid


@dataclass(frozen=True)
class Interruption:
    """The servers that have their new files, or are stopped because the new state does not have them.

    `path` is the folder. `taken` states which file belongs to which server.
    """

    path: str
    applied: frozenset[Sid]
    taken: tuple[str, ...]


def read_now(path: Path, old: Folder, new: Folder) -> Interruption:
    """Compare the files that the servers have now with their old and new files. Raises ConfigError."""
    now = read_mixed_folder(path)
    problems = [problem for sid in sorted(_all(now, old, new)) for problem in _problems(sid, now, old, new)]
    if problems:
        raise ConfigError(tuple(problems))
    applied = frozenset(sid for sid in _all(now, old, new) if _settings(now, sid) == _settings(new, sid))
    return Interruption(now.path, applied, now.taken)


def _all(now: Folder, old: Folder, new: Folder) -> frozenset[Sid]:
    return frozenset((*now.servers, *old.servers, *new.servers))


def _settings(folder: Folder, sid: Sid) -> dict[str, str] | None:
    """The keys of a server in a folder; None if the folder has no file for it."""
    return settings(folder.servers[sid]) if sid in folder.servers else None


def _problems(sid: Sid, now: Folder, old: Folder, new: Folder) -> Iterator[Problem]:
    """The reason why the file of a server is neither its old nor its new one, if it is neither."""
    has = _settings(now, sid)
    if has in (_settings(old, sid), _settings(new, sid)):
        return
    if has is None:
        what = f"there is no file of server {sid}, which runs before and after the roll-out"
        yield Problem(now.path, 0, what, "add the file that it runs with")
        return
    sides = [folder for folder in (old, new) if sid in folder.servers]
    if not sides:
        what = f"server {sid} is neither in {old.path} nor in {new.path}"
        yield Problem(now.servers[sid].origin, 0, what, "remove its file, or add the server to one of them")
        return
    other = [_other_value(now.servers[sid], folder.servers[sid]) for folder in sides]
    what = f"the file of server {sid} is not the one in {' or '.join(folder.path for folder in sides)}"
    right = "give the file that the server runs with, equal to one of these"
    yield Problem(now.servers[sid].origin, 0, f"{what}: {'; '.join(dict.fromkeys(other))}", right)


def _other_value(has: ServerFiles, wanted: ServerFiles) -> str:
    """The first key that differs between two files, with both values."""
    one, other = settings(has), settings(wanted)
    key = next(key for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key))
    values = (shown(key, each.get(key)) for each in (one, other))
    here, there = ("not set" if value is None else repr(value) for value in values)
    return f"{key} is {here}, and {there} in {wanted.origin}"
