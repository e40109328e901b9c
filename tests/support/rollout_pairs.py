"""Random pairs of zoo.cfg files for the planner, as Hypothesis strategies.

The second file is the first one with some changes: members, roles, hosts, ports, weights, groups, the version of the
configuration, standaloneEnabled, and timeouts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import strategies as st

from checker.rollout.inputs.folders import ServerFiles

IDS = range(1, 6)
Groups = tuple[frozenset[int], ...]


@dataclass(frozen=True)
class Line:
    """The `server.N` line of one member, and its weight."""

    host: str
    quorum_port: int = 2888
    election_port: int = 3888
    observer: bool = False
    weight: int = 1

    def text(self, sid: int) -> str:
        """The line, with a newline at its end."""
        role = ":observer" if self.observer else ""
        return f"server.{sid}={self.host}:{self.quorum_port}:{self.election_port}{role}\n"


@dataclass(frozen=True)
class Cfg:
    """One zoo.cfg. A version above 0 is part of the name of its dynamic file, as ZooKeeper writes it."""

    members: Mapping[int, Line]
    groups: Groups = ()
    version: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """Write the files into a new folder, and return the folder."""
        folder.mkdir()
        servers = "".join(line.text(sid) for sid, line in self.members.items())
        for number, group in enumerate(self.groups, start=1):
            servers += f"group.{number}={':'.join(map(str, sorted(group & self.members.keys())))}\n"
        if self.groups:
            servers += "".join(f"weight.{sid}={line.weight}\n" for sid, line in self.members.items())
        settings = "".join(f"{key}={value}\n" for key, value in self.settings.items())
        if self.version:
            name = f"zoo.cfg.dynamic.{self.version:x}"
            (folder / name).write_text(servers, encoding="utf-8")
            servers = f"reconfigEnabled=true\ndynamicConfigFile={name}\n"
        (folder / "zoo.cfg").write_text(settings + servers, encoding="utf-8")
        return folder


def write_servers(folder: Path, servers: Mapping[int, ServerFiles]) -> None:
    """Write the files of some servers, with a folder for each."""
    for sid, files in servers.items():
        place = folder / f"zookeeper-{sid - 1}"
        place.mkdir(parents=True)
        (place / "zoo.cfg").write_text(files.text, encoding="utf-8")
        (place / "myid").write_text(f"{sid}\n", encoding="utf-8")
        if files.dynamic is not None:
            (place / (files.config.dynamic_config_file or "")).write_text(files.dynamic, encoding="utf-8")


SETTINGS = st.fixed_dictionaries(
    {
        "tickTime": st.sampled_from(["2000", "500"]),
        "initLimit": st.sampled_from(["10", "5"]),
        "syncLimit": st.sampled_from(["5", "2"]),
        "dataDir": st.just("/var/lib/zookeeper"),
        "clientPort": st.sampled_from(["2181", "2182"]),
    },
    optional={"standaloneEnabled": st.sampled_from(["true", "false"])},
)


@st.composite
def cfgs(draw: st.DrawFn) -> Cfg:
    """Draw a file of one to four members."""
    size = draw(st.sampled_from([3, 3, 2, 4, 1]))
    sids = draw(st.permutations(IDS).map(lambda ids: ids[:size]))
    observers = draw(st.sets(st.sampled_from(sorted(sids)), max_size=1)) if size > 1 else set()
    members = {sid: Line(f"zoo{sid}", observer=sid in observers) for sid in sorted(sids)}
    return Cfg(members, draw(groups_of(frozenset(sids))), draw(st.sampled_from([0, 0, 0, 0x100000000])), draw(SETTINGS))


def groups_of(sids: frozenset[int]) -> st.SearchStrategy[Groups]:
    """Draw no groups in most cases, or two."""
    some = st.sets(st.sampled_from(sorted(sids))).map(lambda one: tuple(g for g in (frozenset(one), sids - one) if g))
    return st.one_of(st.just(()), st.just(()), st.just(()), some)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Cfg, Cfg]:
    """Draw a file, and the same file with up to three changes."""
    old = draw(cfgs())
    new = old
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3)):
        new = draw(change(new))
    return old, new


def _added(cfg: Cfg) -> st.SearchStrategy[Cfg]:
    free = [sid for sid in IDS if sid not in cfg.members]
    if not free or len(cfg.members) > 3:
        return st.just(cfg)
    return st.sampled_from(free).map(lambda sid: replace(cfg, members=_sorted({**cfg.members, sid: Line(f"zoo{sid}")})))


def _removed(cfg: Cfg) -> st.SearchStrategy[Cfg]:
    if len(cfg.members) < 2:
        return st.just(cfg)
    sids = st.sampled_from(sorted(cfg.members))
    return sids.map(lambda gone: replace(cfg, members={sid: m for sid, m in cfg.members.items() if sid != gone}))


def _with_line(cfg: Cfg, **other: st.SearchStrategy[object]) -> st.SearchStrategy[Cfg]:
    def changed(chosen: tuple[int, dict[str, object]]) -> Cfg:
        sid, fields = chosen
        return replace(cfg, members={**cfg.members, sid: replace(cfg.members[sid], **fields)})  # type: ignore[arg-type]

    return st.tuples(st.sampled_from(sorted(cfg.members)), st.fixed_dictionaries(other)).map(changed)


def _sorted(members: Mapping[int, Line]) -> Mapping[int, Line]:
    return dict(sorted(members.items()))


CHANGES = [
    _added,
    _added,
    _removed,
    lambda cfg: _with_line(cfg, observer=st.booleans()),
    lambda cfg: _with_line(cfg, host=st.sampled_from(["zoo8", "zoo9"])),
    lambda cfg: _with_line(cfg, quorum_port=st.just(2889)),
    lambda cfg: _with_line(cfg, election_port=st.just(3889)),
    lambda cfg: _with_line(cfg, weight=st.integers(0, 2)),
    lambda cfg: groups_of(frozenset(cfg.members)).map(lambda groups: replace(cfg, groups=groups)),
    lambda cfg: st.just(replace(cfg, version=cfg.version and cfg.version + 0x100000000)),
    lambda cfg: SETTINGS.map(lambda settings: replace(cfg, settings=settings)),
]
"""Every kind of change; the change of a member is the most frequent one."""
