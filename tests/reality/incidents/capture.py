"""Copies an incident into a folder that an operator could have, with its truth beside it.

Rules of this module:

- Every server is on a machine of its own there: its home is `/srv/zookeeper`, and its log does not name this machine.
- Files are copied as they are while servers run, so a log file may end in the middle of a record.
- The acknowledged writes are those before the first copy: a quorum of the copies has them. Later ones may be on none.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.servers import Servers
from spec.quorum import Sid
from tests.reality.incidents.scene import Scene, Truth, written_at

HOME = "/srv/zookeeper"
TRUTH = "truth.json"
ENVIRONMENT = re.compile(r"^.*(?:Server|Client) environment:(?!zookeeper\.version|java\.version).*\n", re.MULTILINE)
BANNER = re.compile(r"^.*INFO .*ZooKeeperServer@\d+\] - +[|_/\\ ().,`'-]*\n", re.MULTILINE)
SERIOUS = re.compile(r" - (?:WARN|ERROR) +\[")
NOISE = re.compile(
    r"RecvWorker|SendWorker|maxCnxns is|session 0x0|GOODBYE|LearnerHandler@|PeerState set to|expected 0x1$"
)
"""Lines that every stop of a server and every election bring with them."""
STAMP = re.compile(r"^\S+ \S+ \[myid:[^\]]*\] - ")
LINES_SHOWN, WIDTH = 8, 300
LINES_KEPT = 3000
Addresses = Mapping[str, str]


def capture(scene: Scene, truth: Truth, name: str, folder: Path, addresses: Mapping[Sid, Addresses]) -> dict[str, Any]:
    """Copy all servers below a folder, and write the truth; return it.

    `addresses` replaces texts in the files of a server, such as the address of a proxy by that of the server.
    """
    servers = scene.servers
    assert servers is not None
    shutil.rmtree(folder, ignore_errors=True)
    acknowledged = scene.acknowledged
    for sid in servers.sids:
        copy_server(servers.home(sid), folder / str(sid), addresses.get(sid, {}))
    record = describe(scene, truth, name, acknowledged)
    (folder / TRUTH).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return record


def copy_server(home: Path, place: Path, addresses: Addresses) -> None:
    """Copy the files of one server that an operator has."""

    def plain(text: str) -> str:
        for old, new in addresses.items():
            text = text.replace(old, new)
        return text.replace(str(home), HOME)

    place.mkdir(parents=True)
    for file in sorted(home.glob("zoo.cfg*")):
        if file.is_file():
            (place / file.name).write_text(plain(file.read_text(encoding="utf-8")), encoding="utf-8")
    log = home / "log.txt"
    if log.exists():
        text = plain(log.read_text(encoding="utf-8", errors="replace"))
        lines = BANNER.sub("", ENVIRONMENT.sub("", text)).splitlines(keepends=True)
        if len(lines) > 2 * LINES_KEPT:  # as after a rotation of the log
            lines = lines[:LINES_KEPT] + lines[-LINES_KEPT:]
        (place / "zookeeper.log").write_text("".join(lines), encoding="utf-8")
    for part in ("data", "txlog"):
        if (home / part).exists():
            shutil.copytree(home / part, place / part, ignore=shutil.ignore_patterns("*.pid"))


def describe(scene: Scene, truth: Truth, name: str, acknowledged: Mapping[str, str]) -> dict[str, Any]:
    """The truth of an incident: the cause, who serves, these acknowledged writes, and what the logs say."""
    servers = scene.servers
    assert servers is not None
    roles = {sid: servers.role(sid) for sid in servers.sids}
    lacking = {}
    for sid, role in roles.items():
        if role is not None and (paths := written_at(servers, sid, acknowledged)) is not None:
            lacking[sid] = sorted(acknowledged.keys() - paths)
    return {
        "incident": name,
        "release": scene.release,
        "cause": {"name": truth.cause, "also": list(truth.also), "servers": list(truth.servers)},
        "deed": truth.deed,
        "repairs": {
            sid: {name: text.replace(str(servers.home(sid)), HOME) for name, text in files.items()}
            for sid, files in truth.repairs.items()
        },
        "machines": machines_of(servers),
        "running": list(servers.running),
        "paused": list(scene.paused),
        "roles": roles,
        "addresses": {sid: address_of(servers, sid) for sid in servers.sids},
        "lacking": lacking,
        "log": {sid: serious_lines(servers, sid, scene.lines_before.get(sid, 0)) for sid in servers.sids},
        "acknowledged": acknowledged,
    }


def machines_of(servers: Servers) -> dict[str, list[Sid]]:
    """The servers whose machines have an id, by the id in `myid`."""
    machines: dict[str, list[Sid]] = {}
    for sid in servers.sids:
        machines.setdefault((servers.data(sid) / "myid").read_text(encoding="ascii").strip(), []).append(sid)
    return machines


def address_of(servers: Servers, sid: Sid) -> str:
    place: Any = servers.client_port(sid)
    return f"127.0.0.1:{place}" if isinstance(place, int) else f"{place[0]}:{place[1]}"


def serious_lines(servers: Servers, sid: Sid, begin: int) -> list[str]:
    """The first warnings and errors of a log after a line, each message once, with the exception that follows."""
    file = servers.home(sid) / "log.txt"
    if not file.exists():
        return []
    lines = (
        file.read_text(encoding="utf-8", errors="replace").replace(str(servers.home(sid)), HOME).splitlines()[begin:]
    )
    shown: dict[str, str] = {}
    for number, line in enumerate(lines):
        if not SERIOUS.search(line) or NOISE.search(line):
            continue
        text = STAMP.sub("", line)
        if number + 1 < len(lines) and re.match(r"\S*(?:Exception|Error)\b", lines[number + 1]):
            text += f" / {lines[number + 1]}"
        causes = [later for later in lines[number + 1 : number + 60] if later.startswith("Caused by: ")]
        stack = "".join(lines[number + 1 : number + 3])
        if causes and "Exception" in stack:
            text += f" / {causes[-1]}"
        shown.setdefault(re.sub(r"\d+|\[.*?@", "#", text)[:80], text[:WIDTH])
    return list(shown.values())[:LINES_SHOWN]
