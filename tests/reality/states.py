"""The state of an ensemble as files: its members with their addresses, the keys of all servers, those of one.

Each server has a separate address on the loopback network, so that the files are those of real machines: the same
ports everywhere, and nothing to map. In a text `{home}` stands for the folder of the servers' data, and `{network}`
for the first three numbers of their addresses (`filled`): two programs on one machine have different ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from spec.quorum import Sid

HOME = "{home}"
NETWORK = "{network}."
QUORUM, ELECTION, CLIENT, SECURE = 2888, 3888, 2181, 2281
BASE = {"tickTime": "200", "initLimit": "50", "syncLimit": "25"}
OURS = {"admin.enableServer": "false", "4lw.commands.whitelist": "*"}


@dataclass(frozen=True)
class Place:
    """The addresses of a member, and its role."""

    host: str
    quorum: int = QUORUM
    election: int = ELECTION
    client: int = CLIENT
    observer: bool = False

    def line(self) -> str:
        """The value of its `server.N` line."""
        return f"{self.host}:{self.quorum}:{self.election}{':observer' if self.observer else ''}"


@dataclass(frozen=True)
class State:
    """The files of an ensemble. A key of `own` is in the file of one server only; a value of None leaves a key out."""

    places: Mapping[Sid, Place]
    keys: Mapping[str, str | None] = field(default_factory=dict)
    own: Mapping[Sid, Mapping[str, str]] = field(default_factory=dict)

    @property
    def sids(self) -> tuple[Sid, ...]:
        return tuple(sorted(self.places))

    @property
    def voters(self) -> tuple[Sid, ...]:
        return tuple(sid for sid in self.sids if not self.places[sid].observer)

    def text(self, sid: Sid) -> str:
        place = self.places[sid]
        keys: dict[str, str | None] = {
            **BASE,
            "dataDir": f"{HOME}/server-{sid}/data",
            "clientPort": str(place.client),
            "clientPortAddress": place.host,
            **OURS,
            **({"peerType": "observer"} if place.observer else {}),
            **{f"server.{member}": self.places[member].line() for member in self.sids},
            **self.keys,
            **self.own.get(sid, {}),
        }
        if keys.get("secureClientPort") is not None:  # every server of this machine would bind it otherwise
            keys["secureClientPortAddress"] = place.host
        return "".join(f"{key}={value}\n" for key, value in keys.items() if value is not None)

    def texts(self) -> dict[Sid, str]:
        return {sid: self.text(sid) for sid in self.sids}

    def with_keys(self, keys: Mapping[str, str | None]) -> State:
        """The same state with these keys in all files; a value of None leaves a key out."""
        return replace(self, keys={**self.keys, **keys})

    def with_place(self, sid: Sid, **fields: object) -> State:
        """The same state with other addresses, or another role, of a member; or with a new member."""
        place = self.places.get(sid, Place(f"{NETWORK}{sid}"))
        return replace(self, places={**self.places, sid: replace(place, **fields)})  # type: ignore[arg-type]

    def without(self, sid: Sid) -> State:
        return replace(self, places={other: place for other, place in self.places.items() if other != sid})


def ensemble(count: int, observers: int = 0) -> State:
    """Voters 1 to `count`, and observers with the next ids."""
    sids = range(1, count + observers + 1)
    return State({sid: Place(f"{NETWORK}{sid}", observer=sid > count) for sid in sids})


def network_of(process: int) -> str:
    """The first three numbers of the loopback addresses of a program's servers."""
    return f"127.{64 + process // 250 % 128}.{process % 250}"


def filled(text: str, home: Path, network: str) -> str:
    """A text of a state with the folder of the data, and with addresses."""
    return text.replace(HOME, str(home)).replace(NETWORK, f"{network}.")


def write_folder(folder: Path, texts: Mapping[Sid, str]) -> None:
    """Write the files of a state as an operator collects them: `server1/zoo.cfg`, `server2/zoo.cfg`, ..."""
    for sid, text in texts.items():
        place = folder / f"server{sid}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "zoo.cfg").write_text(text, encoding="utf-8")
