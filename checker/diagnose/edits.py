"""The changes of files that a step makes: for a program that carries it out, and for a reader.

Rules of this module:

- A file is named as the inputs name it: in a copy, not on the machine of its server.
- An edit has the whole text before and after, so a program can refuse a file that has changed since. It exists only
  where the evidence decides the text, and the new file then has the values of the step.
- Data is moved aside, and never deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import ndiff
from functools import partial
from pathlib import Path

from checker.diagnose.evidence import ServerEvidence
from checker.rollout.inputs.folders import ServerFiles, dynamic_text, settings, text_of
from refimpl.disk.files import VERSION_DIRECTORY
from refimpl.disk.survey import MYID, DiskSurvey
from spec.config import ConfigError, parse_zoo_cfg
from spec.quorum import Sid

ASIDE = f"{VERSION_DIRECTORY}.aside"
MEMBERS = r"(?:server|group|weight)\.[0-9]+"
LONGEST_DIFF = 12
"""The lines of an edit that a reader sees."""


@dataclass(frozen=True)
class FileEdit:
    """A file whose text changes."""

    file: str
    before: str
    after: str

    @property
    def data(self) -> dict[str, str]:
        """The edit for a program."""
        return {"file": self.file, "before": self.before, "after": self.after}

    @property
    def lines(self) -> Iterator[str]:
        """The edit for a reader: the lines that differ."""
        lines = [line for line in ndiff(self.before.splitlines(), self.after.splitlines()) if line[0] in "+-"]
        yield f"{self.file}:"
        yield from lines[:LONGEST_DIFF]
        if len(lines) > LONGEST_DIFF:
            yield f"and {len(lines) - LONGEST_DIFF} more lines"


@dataclass(frozen=True)
class MovedFolder:
    """A folder that is moved aside."""

    file: str
    to: str

    @property
    def data(self) -> dict[str, str]:
        """The move for a program."""
        return {"rename": self.file, "to": self.to}

    @property
    def lines(self) -> Iterator[str]:
        """The move for a reader."""
        yield f"{self.file} becomes {self.to}"


Edit = FileEdit | MovedFolder


def moves(disk: DiskSurvey) -> tuple[MovedFolder, ...]:
    """The data of a server, moved aside."""
    places = dict.fromkeys((disk.data_dir, disk.log_dir))
    return tuple(MovedFolder(f"{place}/{VERSION_DIRECTORY}", f"{place}/{ASIDE}") for place in places)


def myid_edits(server: ServerEvidence, sid: Sid) -> tuple[FileEdit, ...]:
    """The file `myid` with another id."""
    path = None if server.disk is None else Path(server.disk.data_dir) / MYID
    before = None if path is None else text_of(path)
    return () if before is None else (FileEdit(str(path), before, f"{sid}\n"),)


def key_edits(files: ServerFiles, key: str, value: str) -> tuple[FileEdit, ...]:
    """A zoo.cfg with another value of a key."""
    after = _without(files.text, re.escape(key)) + f"{key}={value}\n"
    changed = edited(files, after)
    return () if changed is None or settings(changed).get(key) != value else (_edit(files, after),)


def member_edits(files: ServerFiles, model: ServerFiles) -> tuple[FileEdit, ...]:
    """A zoo.cfg with the members that another one has."""
    lines = re.findall(rf"^[ \t\f]*{MEMBERS}[ \t\f]*[=: \t].*$", model.text, re.MULTILINE)
    after = _without(files.text, MEMBERS) + "".join(f"{line.strip()}\n" for line in lines)
    changed = edited(files, after)
    has_members = changed is not None and files.dynamic is None and changed.config.servers == model.config.servers
    return (_edit(files, after),) if has_members and after != files.text else ()


def port_edits(files: ServerFiles, sid: Sid) -> tuple[FileEdit, ...]:
    """A zoo.cfg with the two peer ports of a server exchanged."""
    line = re.compile(rf"^[ \t\f]*server\.{sid}[ \t\f]*[=: \t].*$", re.MULTILINE)
    after = line.sub(lambda match: re.sub(r":(\d+):(\d+)(?=[:;|\s]|$)", r":\2:\1", match[0]), files.text)
    changed, before = edited(files, after), files.config.server(sid)
    now = None if changed is None else changed.config.server(sid)
    if before is None or now is None:
        return ()
    ports = [(address.quorum_port, address.election_port) for address in before.addresses]
    is_exchanged = files.dynamic is None and ports == [
        (address.election_port, address.quorum_port) for address in now.addresses
    ]
    return (_edit(files, after),) if is_exchanged else ()


def _without(text: str, key: str) -> str:
    """A text without the lines of a key, with a line end."""
    rest = re.sub(rf"^[ \t\f]*{key}[ \t\f]*[=: \t].*(?:\n|\Z)", "", text, flags=re.MULTILINE)
    return rest if not rest or rest.endswith("\n") else f"{rest}\n"


def edited(files: ServerFiles, text: str) -> ServerFiles | None:
    """A server's files with another zoo.cfg; None if its text is that of an answer, or ZooKeeper refuses it."""
    reader = partial(dynamic_text, Path(files.origin).parent)
    if files.told is not None:
        return None
    try:
        return replace(files, text=text, config=parse_zoo_cfg(text, files.origin, read=reader, complete=False))
    except ConfigError:
        return None


def _edit(files: ServerFiles, after: str) -> FileEdit:
    return FileEdit(files.origin, files.text, after)
