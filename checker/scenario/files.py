"""The zoo.cfg files of a scenario: each is read once, and parsed once for each server that starts with it.

Rules of this module: a file is asked for by the name that stands in the scenario (or in `dynamicConfigFile`),
and every text that was given is kept, so that the run can be made again without the files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import permutations
from pathlib import Path as FilePath

from msgspec.structs import replace

from checker.models.ensemble import File, Setup
from checker.scenario.errors import nearest
from checker.scenario.located import Located, Path
from spec.config import Config, parse_zoo_cfg
from spec.quorum import Addresses, Port, Sid, addresses_of, opens, reaches

LISTEN_ON_ALL_IPS = "quorumListenOnAllIPs"
Read = Callable[[str], str | None]
"""Gives the text of the file of that name, or None if there is none."""


class Files:
    """The files that a scenario names; `texts` are those that were read."""

    def __init__(self, located: Located, read: Read, known: tuple[str, ...] = ()) -> None:
        self._located, self._read, self._known = located, read, known
        self.texts: dict[str, str] = {}

    def file(self, name: str, sid: Sid, path: Path) -> File:
        """A server's file; `path` is the place that names it. Raises ScenarioError or ConfigError."""
        text = self._text(name)
        if text is None:
            right = nearest(name, self._known) if self._known else "name a file that can be read"
            raise self._located.error(path, f"there is no file {name!r}", right)
        config = parse_zoo_cfg(text, file=name, read=self._text, complete=False)
        if sid not in config.view.members:
            listed = ", ".join(f"server.{each}" for each in sorted(config.view.members)) or "no server"
            what = f"{name} names {listed}, and this is server {sid}"
            raise self._located.error(path, what, f"name a file with a line server.{sid}")
        # Once more, for what is wrong for this server only.
        parse_zoo_cfg(text, file=name, myid=f"{sid}\n", read=self._text, complete=False)
        return File(name, replace(config.view, addresses=_addresses(config)))

    def _text(self, name: str) -> str | None:
        if name not in self.texts:
            text = self._read(name)
            if text is None:
                return None
            self.texts[name] = text
        return self.texts[name]


def _addresses(config: Config) -> Addresses:
    """The peer addresses of a file."""
    servers = {
        server.sid: {(each.host, each.quorum_port, each.election_port) for each in server.addresses}
        for server in config.servers
    }
    return addresses_of(servers, on_all_ips=dict(config.properties).get(LISTEN_ON_ALL_IPS, "").lower() == "true")


def with_needed_addresses(setup: Setup) -> Setup:
    """The setup without addresses if every server reaches every other one, whichever of their files they have.

    Addresses that make no difference would only tell files apart, and with them states.
    """
    files = [(sid, file.view.addresses) for sid in setup.sids for file in setup.files_of(sid)]
    if any(not _connect(*one, *other) for one, other in permutations(files, 2) if one[0] != other[0]):
        return setup

    def bare(file: File) -> File:
        return File(file.name, replace(file.view, addresses=None))

    members = tuple(
        dataclasses.replace(each, file=bare(each.file), other_files=tuple(map(bare, each.other_files)))
        for each in setup.members
    )
    plan = tuple(dataclasses.replace(each, file=each.file and bare(each.file)) for each in setup.plan)
    return dataclasses.replace(setup, members=members, plan=plan)


def _connect(one: Sid, dialler: Addresses | None, other: Sid, listener: Addresses | None) -> bool:
    """Whether a server can connect to both peer ports of another one."""
    return opens(dialler, one, listener, other) and reaches(dialler, listener, other, Port.QUORUM)


def beside(scenario: FilePath) -> Read:
    """Reads files by their names relative to the folder of a scenario."""

    def read(name: str) -> str | None:
        try:
            return (scenario.parent / name).read_text(encoding="utf-8")
        except (OSError, ValueError):  # not there, not text, or no name that a file can have
            return None

    return read


def names_beside(scenario: FilePath) -> tuple[str, ...]:
    """The names of what could be meant: the other files in the folder of a scenario."""
    return tuple(sorted(each.name for each in scenario.parent.iterdir() if each.is_file() and each != scenario))
