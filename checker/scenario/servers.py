"""The servers of a scenario: the file of each, the content of its disk, and its release.

Rules of this module: a disk must be one with which a server starts. `QuorumPeer.loadDataBase` refuses a currentEpoch
beyond the acceptedEpoch, or behind the last zxid, and so does this module. The second check applies only where servers
lead and follow, since an election compares any votes, and not to a server that runs standalone, which reads no epoch.

`servers: {count: 3}` stands for the servers 1 to 3; `list_servers` replaces it by these before they are read.

A server, and an entry of the plan, may have `like: 3.8.4`, a release whose known defects that server has, or
`variants`, a list of defects. Without either key a server runs the specification. Defects of a release that change
nothing in a run are left out; a variant by name that changes nothing is an error, as for the whole ensemble.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from checker.models.ensemble import Member, PlannedAction, Setup, Software
from checker.scenario.files import Files
from checker.scenario.kind import word
from checker.scenario.schema import ZAB, LogEntry, PlanEntry, Scenario, ServerEntry, ServersEntry, decode
from checker.scenario.yaml_lines import (
    LikeError,
    NoEffect,
    Path,
    YamlDocument,
    like_named,
    nearest,
    position,
    variant_names,
)
from spec.durable import Durable
from spec.quorum import Sid
from spec.releases import defects_of
from spec.text import integer, required_integer
from spec.txn import Layout, Txn, counter_of, epoch_of, format_zxid
from spec.variants import Variant

LARGEST = (1 << 63) - 1
LARGEST_EPOCH = (1 << 31) - 1


MOST = 9
"""The limit for `count`."""
WIDE_COUNTERS: Mapping[str, Layout] = {
    "known": Layout(),
    "enabled": Layout(may_switch=True),
    "enabled-if-all-know": Layout(may_switch=True, asks_first=True),
}
"""What a server knows of the wide layout of zxids (`spec.zab.zxid_layout`), by the word of a scenario."""
SETTINGS = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nclientPort=2181\nstandaloneEnabled=false\n"


def list_servers(scenario: Scenario, document: YamlDocument, files: Files) -> Scenario:
    """The scenario with its servers and their files in place of a number of servers. Raises ScenarioError."""
    keys = document.value
    if not isinstance(scenario.servers, dict) or scenario.servers.keys().isdisjoint(ServersEntry.__struct_fields__):
        if scenario.sizes:
            raise document.error(("sizes",), "the scenario has no number of servers", "write servers: {count: 3}")
        return scenario
    count = decode(ServersEntry, document, scenario.servers, ("servers",)).count
    if count not in scenario.sizes and scenario.sizes:
        right = f"write one of {', '.join(map(str, scenario.sizes))}, or add it to sizes"
        raise document.error(("servers", "count"), f"{count} is not a size of this scenario", right)
    _check_sizes(scenario, document)
    for key, value in scenario.sizes.get(count, {}).items():
        keys[key] = keys[key] | value if isinstance(value, dict) and isinstance(keys.get(key), dict) else value
    document.lines |= {path[2:]: line for path, line in document.lines.items() if path[:2] == ("sizes", count) != path}
    entry = decode(ServersEntry, document, keys["servers"], ("servers",))
    sids = range(1, count + 1)
    odd_view = next((sid for sid, voters in entry.other_view.items() if not _is_view(sid, voters, sids)), None)
    for is_wrong, key, problem, right in (
        (not 1 <= count <= MOST, "count", f"{count} servers", f"write one of 1 to {MOST}"),
        ("file" in keys, "count", "the files of such servers are made for them", "leave file out, or list the servers"),
        (
            not 0 <= entry.observers < count, "observers",
            f"{entry.observers} leaves no voter among {count} servers", f"write a number from 0 to {count - 1}",
        ),
        (entry.late < 0, "late", f"{entry.late} servers", "write 0 or more"),
        (
            entry.established and (entry.late or keys.get("history")), "established",
            "it starts all servers, and others start some of them", "leave late and history out",
        ),
        (
            odd_view is not None, "other_view", f"no server {odd_view} has such a file",
            f"write for one of 1 to {count} its voters, each once, with itself",
        ),
    ):  # fmt: skip
        if is_wrong:
            raise document.error(("servers", key), problem, right)
    disk = ServerEntry(epoch=entry.epoch, log=entry.log)
    _durable(document, disk, ("servers",), leads_and_follows=keys.get("protocol") == ZAB)  # errors at their own place
    files.texts["zoo.cfg"] = zoo_cfg(sids, sids[count - entry.observers :])
    files.texts |= {f"server-{sid}.cfg": zoo_cfg(voters) for sid, voters in entry.other_view.items()}
    keys["servers"] = {
        sid: {
            "file": f"server-{sid}.cfg" if sid in entry.other_view else "zoo.cfg",
            "late": sid > count - entry.late,
            "epoch": entry.epoch,
            "log": entry.log,
        }
        for sid in sids
    }
    if entry.established:
        keys["history"] = [{"start": list(sids)}]
    return decode(Scenario, document, keys, ())


def _check_sizes(scenario: Scenario, document: YamlDocument) -> None:
    """Raise ScenarioError for a size that cannot be, or for a key that no scenario of this size has."""
    names = [name for name in Scenario.__struct_fields__ if name not in ("file", "sizes")]
    for size, keys in scenario.sizes.items():
        if not 1 <= size <= MOST:
            raise document.error(("sizes", size), f"{size} servers", f"write one of 1 to {MOST}")
        for key, value in keys.items():
            if key not in names:
                raise document.error(("sizes", size, key), "unknown key", nearest(key, names))
            if key == "servers" and isinstance(value, dict) and "count" in value:
                right = "leave it out: the key of the map is the number"
                raise document.error(("sizes", size, key, "count"), "it is written twice", right)


def _is_view(sid: Sid, voters: list[Sid], sids: Iterable[Sid]) -> bool:
    """Whether these voters may be in the file of a server of these, which is one of them."""
    return sid in sids and sid in voters and min(voters) >= 0 and len(set(voters)) == len(voters)


def zoo_cfg(voters: Iterable[Sid], observers: Iterable[Sid] = ()) -> str:
    """A zoo.cfg with these servers; the observers are among them."""
    lines = (f"server.{n}=zoo{n}:2888:3888{':observer' if n in observers else ''}\n" for n in voters)
    return SETTINGS + "".join(lines)


def members_of(scenario: Scenario, document: YamlDocument, files: Files) -> Iterator[Member]:
    """The servers of a scenario. Raises ScenarioError, and ConfigError for a file."""
    servers = scenario.servers
    if not isinstance(servers, dict | list) or not servers:
        raise document.error(("servers",), "no servers", "write their ids, as [1, 2, 3] or as a map")
    alone = isinstance(servers, list)
    sids: set[Any] = set()
    for number, sid in enumerate(servers):
        path: Path = ("servers", position(number) if alone else sid)
        if type(sid) is not int or abs(sid) > LARGEST or sid in sids:
            problem = f"{str(sid)[:60]!r} is not a server id, or occurs twice"
            raise document.error(path, problem, "write the number in its myid file, once")
        sids.add(sid)
        value = None if alone else servers[sid]
        entry = decode(ServerEntry, document, {} if value is None else value, path)
        name = entry.file or scenario.file
        if name is None:
            raise document.error(path, "it has no file", "give it a file, or all servers one: file: zoo.cfg")
        place = (*path, "file") if entry.file else ("file",)
        file = files.file(name, sid, place)
        leads_and_follows = scenario.protocol == ZAB
        durable = _durable(document, entry, path, leads_and_follows=leads_and_follows)
        if leads_and_follows and not file.view.standalone:
            _check_epoch(document, durable, path)
        extras = [
            files.file(extra, sid, (*path, "other_files", position(n))) for n, extra in enumerate(entry.other_files)
        ]
        yield Member(sid, file, durable, entry.late, tuple(extras), software_of(entry, document, path) or Software())


def _durable(document: YamlDocument, entry: ServerEntry, path: Path, *, leads_and_follows: bool) -> Durable:
    idle = (
        [key for key in ("accepted_epoch", "log", "wide_counter") if getattr(entry, key)]
        if not leads_and_follows
        else []
    )
    for key in idle:
        problem = "it changes nothing where the election is all there is"
        raise document.error((*path, key), problem, "write protocol: zab")
    epoch = _epoch(document, entry.epoch, (*path, "epoch"))
    accepted = epoch
    if entry.accepted_epoch is not None:
        accepted = _epoch(document, entry.accepted_epoch, (*path, "accepted_epoch"))
        if accepted < epoch:
            problem = f"the acceptedEpoch {accepted} is less than the currentEpoch {epoch}"
            raise document.error((*path, "accepted_epoch"), problem, f"write {epoch} or more")
    snapshot = zxid_of(document, entry.zxid, (*path, "zxid"))
    log = tuple(_log(document, entry.log, snapshot, (*path, "log")))
    layout = None
    if entry.wide_counter is not None:
        layout = WIDE_COUNTERS[word(document, entry.wide_counter, WIDE_COUNTERS, (*path, "wide_counter"))]
    return Durable(accepted, epoch, snapshot, log, layout=layout)


def _check_epoch(document: YamlDocument, durable: Durable, path: Path) -> None:
    """Refuse a disk with which no member of an ensemble starts (`QuorumPeer.loadDataBase`)."""
    last, epoch = durable.last_zxid, durable.current_epoch
    if epoch_of(last) > epoch:
        problem = f"the currentEpoch {epoch} is behind the last zxid {format_zxid(last)}, and no server starts so"
        raise document.error(path, problem, f"write epoch: {epoch_of(last)}, or more")


def _epoch(document: YamlDocument, epoch: int, path: Path) -> int:
    if not 0 <= epoch <= LARGEST_EPOCH:
        raise document.error(path, f"the epoch {epoch}", f"write a number from 0 to {LARGEST_EPOCH}")
    return epoch


def _log(document: YamlDocument, entries: list[int | str | dict[str, Any]], snapshot: int, path: Path) -> Iterator[Txn]:
    """The transactions after the snapshot; the default for a value is the text of the zxid."""
    last = snapshot
    for number, value in enumerate(entries):
        place: Path = (*path, position(number))
        entry = decode(LogEntry, document, value, place) if isinstance(value, dict) else LogEntry(value)
        place = (*place, "zxid") if isinstance(value, dict) else place
        zxid = zxid_of(document, entry.zxid, place)
        if not counter_of(zxid):
            right = "write a counter of 1 or more"
            raise document.error(place, f"{format_zxid(zxid)} names an epoch, and no transaction", right)
        if zxid <= last:
            problem = f"{format_zxid(zxid)} is not beyond {format_zxid(last)}, which is before it"
            raise document.error(place, problem, "write the transactions beyond `zxid`, in ascending order")
        yield Txn(zxid, format_zxid(zxid) if entry.value is None else entry.value)
        last = zxid


def zxid_of(document: YamlDocument, written: int | str, path: Path) -> int:
    """A zxid: a number, or `epoch:counter`."""
    zxid = written
    if isinstance(zxid, str):
        parts = re.fullmatch(r"([0-9]{1,10}):(0[xX][0-9a-fA-F]{1,8}|[0-9]{1,10})", zxid)
        text = parts[2].lower() if parts else ""
        counter = integer(text.removeprefix("0x"), 0, (1 << 32) - 1, 16 if text.startswith("0x") else 10)
        zxid = (required_integer(parts[1]) << 32) + counter if parts and counter is not None else -1
    if not 0 <= zxid <= LARGEST:
        right = "write a number, as 0x100000003, or epoch:counter, as 1:3"
        raise document.error(path, f"{str(written)[:40]!r} is not a zxid", right)
    return zxid


# Releases.


def software_of(entry: ServerEntry | PlanEntry, document: YamlDocument, path: Path) -> Software | None:
    """The software that an entry names; None without both keys. Raises ScenarioError."""
    if entry.like is None and not entry.variants:
        return None
    defects: list[Variant] = []
    if entry.like is not None:
        try:
            defects += defects_of(like_named(entry.like))
        except LikeError as error:
            raise document.error((*path, "like"), error.reason.what, error.reason.right) from None
    valid = [variant.value for variant in Variant]
    names = [
        Variant(word(document, name, valid, (*path, "variants", position(number))))
        for number, name in enumerate(entry.variants)
    ]
    parts = [f"ZooKeeper {entry.like}"] if entry.like else []
    parts += [f"variants {variant_names(names)}"] if names else []
    return Software(" and ".join(parts), frozenset((*defects, *names)))


WhyNoEffect = Callable[[Variant, Setup], NoEffect | None]


def without_idle_defects(setup: Setup, why_no_effect: WhyNoEffect) -> Setup:
    """The setup without those defects of its releases that change nothing in it; a defect may need another one."""
    while idle := {defect for defect in _defects(setup.releases) if why_no_effect(defect, setup) is not None}:
        setup = _without(setup, frozenset(idle))
    return setup


def _defects(releases: Iterable[Software]) -> Iterator[Variant]:
    for release in releases:
        yield from release.defects


def _without(setup: Setup, idle: frozenset[Variant]) -> Setup:
    releases = {release: replace(release, defects=release.defects - idle) for release in setup.releases}
    members = tuple(replace(member, software=releases[member.software]) for member in setup.members)
    plan = tuple(
        replace(planned, software=releases[planned.software])
        if isinstance(planned, PlannedAction) and planned.software is not None
        else planned
        for planned in setup.plan
    )
    return replace(setup, members=members, plan=plan)
