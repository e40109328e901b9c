"""The zoo.cfg files of a scenario: each is read once, and parsed once for each server with it.

A file has the name from the scenario (or from `dynamicConfigFile`). `Files.texts` holds all texts, so the run can be
repeated without the files.
"""

import dataclasses
from collections.abc import Callable
from difflib import get_close_matches
from itertools import permutations
from pathlib import Path as FilePath

from msgspec.structs import replace

from checker.models.ensemble import File, PlannedAction, Setup
from checker.scenario.yaml_lines import Path, YamlDocument
from checker.user_files import CONFIGURATION, TooLargeError, read_bytes
from spec.config import parse_zoo_cfg
from spec.quorum import Addresses, Port, Sid, opens, reaches

Read = Callable[[str], str | None]
"""Returns the text of the file with that name, or None."""


MOST_NAMES = 5
"""The limit for the file names in an error."""


class FolderError(Exception):
    """The name of a file belongs to a folder."""


class Files:
    """The files named in a scenario; `texts` has the texts read so far."""

    def __init__(self, document: YamlDocument, read: Read, known: tuple[str, ...] = ()) -> None:
        self._document, self._read, self._known = document, read, known
        self.texts: dict[str, str] = {}

    def file(self, name: str, sid: Sid, path: Path) -> File:
        """Read the file of a server; `path` is its place in the scenario. Raises ScenarioError or ConfigError."""
        try:
            text = self._text(name)
        except (FolderError, TooLargeError) as error:
            raise self._document.error(path, f"{name!r}: {error}", "name a zoo.cfg") from None
        if text is None:
            raise self._document.error(path, f"no such file: {name!r}", self._similar(name))
        config = parse_zoo_cfg(text, file=name, read=self._text, complete=False)
        if sid not in config.view.members and (config.servers or config.distributed):
            members = ", ".join(f"server.{member}" for member in sorted(config.view.members)) or "no server"
            problem = f"{name} names {members}, and this is server {sid}"
            raise self._document.error(path, problem, f"name a file with a line server.{sid}")
        # Parsed again with its myid: this finds the mistakes that concern this server only.
        conf = parse_zoo_cfg(text, file=name, myid=f"{sid}\n", read=self._text, complete=False)
        return File(name, replace(conf.effective_view, addresses=conf.peer_addresses if conf.distributed else None))

    def _similar(self, name: str) -> str:
        """Return the advice for an unknown name: similar names, or all names if they are few."""
        close = get_close_matches(name[:80], self._known, n=MOST_NAMES, cutoff=0.5)
        if not close and len(self._known) <= MOST_NAMES:
            close = list(self._known)
        if not close:
            return "name a file that can be read"
        return f"did you mean {close[0]}?" if len(close) == 1 else "write one of " + ", ".join(close)

    def _text(self, name: str) -> str | None:
        if name not in self.texts:
            text = self._read(name)
            if text is None:
                return None
            self.texts[name] = text
        return self.texts[name]


def with_needed_addresses(setup: Setup) -> Setup:
    """The setup, without addresses if every server reaches every other one, with any of their files.

    Addresses that make no difference would only distinguish files, and with them states.
    """
    files = [(sid, file.view.addresses) for sid in setup.sids for file in setup.files_of(sid)]
    if any(not _connect(*first, *second) for first, second in permutations(files, 2) if first[0] != second[0]):
        return setup

    def bare(file: File) -> File:
        return File(file.name, replace(file.view, addresses=None))

    members = tuple(
        dataclasses.replace(member, file=bare(member.file), other_files=tuple(map(bare, member.other_files)))
        for member in setup.members
    )
    plan = tuple(
        dataclasses.replace(step, file=step.file and bare(step.file)) if isinstance(step, PlannedAction) else step
        for step in setup.plan
    )
    return dataclasses.replace(setup, members=members, plan=plan)


def _connect(one: Sid, dialler: Addresses | None, other: Sid, listener: Addresses | None) -> bool:
    """Whether a server can connect to both peer ports of another one."""
    return opens(dialler, one, listener, other) and reaches(dialler, listener, other, Port.QUORUM)


def beside(scenario: FilePath) -> Read:
    """Make a reader of files relative to the folder of a scenario. It raises FolderError and TooLargeError."""

    def read(name: str) -> str | None:
        path = scenario.parent / name
        try:
            return read_bytes(path, CONFIGURATION).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        except IsADirectoryError:
            raise FolderError("it is a folder") from None
        except (OSError, ValueError):  # a missing file, one that is not text, or an impossible name
            return None

    return read


def names_beside(scenario: FilePath) -> tuple[str, ...]:
    """Return the names of the other files in the folder of a scenario."""
    return tuple(sorted(file.name for file in scenario.parent.iterdir() if file.is_file() and file != scenario))
