"""One state of an ensemble, the value that every input becomes; and folders with zoo.cfg files, in their layouts.

    DIR/zoo.cfg                     one file for all its members; a single *.cfg of any name, or a path to a file, too
    DIR/anything/zoo.cfg            a folder for each server, with its myid in it or in its dataDir
    DIR/1/zoo.cfg, DIR/server1/...  the same without a myid; then the number in the name of the folder is the id
    DIR/zoo-1.cfg, DIR/1.cfg        a file for each server; also for a single standalone one
    DIR/zoo.cfg, DIR/myid           a standalone server whose file has no server lines

Rules of this module:

- One folder is one state of the ensemble, so all files in it name the same members in the same roles.
- A myid decides over the name of its folder: pod `zookeeper-0` of a StatefulSet usually has myid 1.
- Anything that does not fit is a ConfigError with every file and line concerned. Nothing is guessed: `Folder.taken`
  states which file belongs to which server, and the reason.
- A standalone server needs neither a myid nor a `server.N` line. As one state of an ensemble it has an id all the same:
  the one that it has before or after. Its line, a myid or the name of its file or folder must say it.
- A dynamic file is read from its path relative to the zoo.cfg, or from the folder of the zoo.cfg. An absolute path is
  looked up in the folder of the zoo.cfg only: the folder is a copy, and this machine may have a file of that name.
- The same checks apply wherever a text comes from (`state_of`). A text that an image or an operator would write has no
  lines that the user could look up, so an error or a warning in it has the name of its input only.
- A myid is read from the folder of the input alone, or from a folder in it. A dataDir that leads elsewhere is passed
  over: it is a path of the server, and this machine may have a file of that name.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from checker.execution import poll
from checker.rollout.inputs.documents import input_error
from checker.rollout.inputs.platform import NAMESPACE, DataVolume, PodHosts, WayOfWorking, lost_with_pods
from checker.user_files import CONFIGURATION, TooLargeError, read_bytes
from spec.config import Address, Config, ConfigError, Problem, ServerAddress, parse_zoo_cfg
from spec.config.ensemble import is_ensemble_key
from spec.config.problems import WHITE, Findings
from spec.config.properties import read_properties
from spec.quorum import Sid, View
from spec.quorum.addresses import WILDCARDS
from spec.text import LONG, integer, required_integer

NUMBERED = re.compile(r"(?:zoo|zk|zookeeper|server|node)?[-_.]?([0-9]{1,9})", re.IGNORECASE)
"""A name with the id of a server: 3, zoo-3, server3."""
SAME = "give all servers of one folder the same members: it is the state before, or the state after"
NAMED = ("server", "group", "weight")
KEY_WITH_ID = re.compile(r"^[ \t\f]*([A-Za-z]+)\.(\d+)[ \t\f]*[=: \t]")
LINE = re.compile(r"^[ \t\f]*server\.([+-]?[0-9]+)[ \t\f]*[=: \t]")
T = TypeVar("T")


@dataclass(frozen=True)
class ServerFiles:
    """The files of one server: the text of its zoo.cfg and of its dynamic file, if any, and the configuration in them.

    `origin` is the path of the zoo.cfg. `told` are the keys whose values the source of the text states; None for a
    whole file, which states every key. A live server does not state all of its keys.
    """

    sid: Sid
    origin: str
    text: str
    dynamic: str | None
    config: Config
    told: frozenset[str] | None = None

    @property
    def view(self) -> View:
        """The view that the server runs with."""
        return self.config.effective_view

    @property
    def clients(self) -> tuple[Address, ...]:
        """The client addresses: that of the keys of the file, and that of the server's own line."""
        line = self.config.server(self.sid)
        clients = (self.config.client, line.client if line is not None else None)
        return tuple(client for client in clients if client is not None)

    def states(self, key: str) -> bool:
        """Whether the input of the file states the value of a key; a live ensemble does not state every one."""
        return self.told is None or key in self.told or is_ensemble_key(key)

    @property
    def members(self) -> str:
        """The text with the lines of the members."""
        return self.text if self.dynamic is None else self.dynamic


def settings(given: ServerFiles) -> Mapping[str, str]:
    """The keys of a server's files with their values; of a repeated key the last value counts."""
    return _settings(given.text, given.dynamic or "")


@lru_cache(maxsize=64)
def _settings(*texts: str) -> Mapping[str, str]:
    """The keys in some texts; servers often share one text, which is long where there are many servers."""
    props = (prop for text in texts for prop in read_properties(text, "", Findings()))
    return {prop.key.strip(WHITE): prop.value.strip(WHITE) for prop in props}


def addresses_of(servers: Mapping[Sid, ServerFiles]) -> dict[Sid, frozenset[ServerAddress]]:
    """The peer addresses of each server by all files, in lower case; a wildcard only if there is nothing else."""
    addresses: dict[Sid, set[ServerAddress]] = {}
    for files in {(files.text, files.dynamic): files for files in servers.values()}.values():  # each text is read once
        for line in files.config.servers:
            addresses.setdefault(line.sid, set()).update(
                msgspec.structs.replace(address, host=address.host.lower()) for address in line.addresses
            )
    return {
        sid: frozenset(address for address in hosts if address.host not in WILDCARDS) or frozenset(hosts)
        for sid, hosts in addresses.items()
    }


@dataclass(frozen=True)
class Folder:
    """One state of an ensemble: the files of each member, and a sentence for each file that was read.

    `path` is the input as the user has named it: a path, or the addresses of a live ensemble. `working` is the way of
    working of the platform, `leader` the server that leads now, and `hosts` the names of the pods,
    each None if the input does not state it. `volumes` are the volumes with the data, where the input states them.
    `names` has the old name of each host that is a machine of the old state under another name.
    """

    path: str
    servers: Mapping[Sid, ServerFiles]
    taken: tuple[str, ...]
    working: WayOfWorking | None = None
    leader: Sid | None = None
    hosts: PodHosts | None = None
    volumes: Mapping[Sid, DataVolume] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def view(self) -> View:
        """The view that all members have."""
        return next(iter(self.servers.values())).view

    @property
    def warnings(self) -> tuple[str, ...]:
        """Contents that ZooKeeper accepts and that are probably mistakes, without repetitions."""
        servers = self.servers.values()
        accepted = [str(warning) for files in servers for warning in files.config.warnings]
        misspelt = (warning for files in servers for warning in _misspelt(files))
        partition = self.working.partition_words if self.working is not None else ""
        partitions = [f"{self.path}: {partition}"] if partition else []
        return tuple(dict.fromkeys([*accepted, *misspelt, *lost_with_pods(self.path, self.volumes), *partitions]))


class ServerText(NamedTuple):
    """The text of a server's zoo.cfg and its origin; `told` as in `ServerFiles`.

    `read` gives the text of a file beside it, such as a dynamic file. `written` is False for a text that a program
    would write: its lines are not those of a file.
    """

    sid: Sid
    origin: str
    text: str
    read: Callable[[str], str | None] = dict[str, str]().get
    told: frozenset[str] | None = None
    written: bool = True

    def parsed(self) -> ServerFiles:
        """The files of the server. Raises ConfigError for a text that ZooKeeper refuses."""
        try:
            config = parse_zoo_cfg(self.text, self.origin, f"{self.sid}\n", self.read, complete=False)
            check_quorum(config)
        except ConfigError as error:
            raise ConfigError(self._placed(error.problems)) from None
        config = msgspec.structs.replace(config, warnings=self._placed(config.warnings))
        dynamic = None if config.dynamic_config_file is None else self.read(config.dynamic_config_file)
        return ServerFiles(self.sid, self.origin, self.text, dynamic, config, self.told)

    def _placed(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        return (
            problems
            if self.written
            else tuple(Problem(problem.file, 0, problem.what, problem.right) for problem in problems)
        )


def collected(calls: Iterable[Callable[[], T]]) -> list[T]:
    """The results of some calls. Raises ConfigError with the problems of every call that raises one."""
    results, problems = list[T](), dict[Problem, None]()
    for call in calls:
        try:
            results.append(call())
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(tuple(problems))
    return results


def state_of(
    path: str,
    texts: Iterable[ServerText],
    taken: Iterable[str],
    *,
    working: WayOfWorking | None = None,
    leader: Sid | None = None,
    hosts: PodHosts | None = None,
) -> Folder:
    """The state with these files. Raises ConfigError for a file that ZooKeeper refuses, or different members."""
    servers = collected(text.parsed for text in texts)
    check_together(servers, shared=False)
    sentences = (*taken, *([working.sentence] if working and working.sentence else []))
    return Folder(path, {files.sid: files for files in servers}, sentences, working, leader, hosts)


def with_volumes(state: Folder, volumes: Mapping[Sid, DataVolume | None]) -> Folder:
    """A state with the volumes of its servers, as far as they are stated, and a sentence for each kind."""
    stated = {sid: volume for sid, volume in volumes.items() if volume is not None}
    sentences = dict.fromkeys(volume.sentence for volume in stated.values())
    return replace(state, volumes={**state.volumes, **stated}, taken=tuple(dict.fromkeys((*state.taken, *sentences))))


def _misspelt(given: ServerFiles) -> Iterator[str]:
    """Warnings for unknown keys that resemble `server.N`, `group.N` or `weight.N`."""
    for number, line in enumerate(given.text.splitlines(), start=1):
        match = KEY_WITH_ID.match(line)
        if match and match[1] not in NAMED and (near := get_close_matches(match[1].lower(), NAMED, n=1, cutoff=0.7)):
            key = f"{given.origin}:{number}: {match[1]}.{match[2]}"
            yield f"{key} is no key that ZooKeeper knows, and is passed over; did you mean {near[0]}.{match[2]}?"


def text_of(path: Path) -> str | None:
    """A file's text as Java's Properties.load reads it; None if it cannot be read."""
    try:
        return read_bytes(path, CONFIGURATION).decode("iso-8859-1")
    except (OSError, ValueError, TooLargeError):  # not there, not readable, or no name that a file can have
        return None


def sids_in(text: str) -> dict[Sid, int]:
    """The ids of the `server.N` lines of a text, with the numbers of the lines; of a repeated one the first counts."""
    lines: dict[Sid, int] = {}
    for number, line in enumerate(re.split(r"\r\n?|\n", text), start=1):
        if (match := LINE.match(line)) and (sid := integer(match[1], *LONG)) is not None:
            lines.setdefault(sid, number)
    return lines


def line_of(text: str, sid: Sid) -> int:
    """The number of the line that names a server; 0 if there is none."""
    return sids_in(text).get(sid, 0)


def check_quorum(config: Config) -> None:
    """Raises ConfigError if the voters of a configuration are not a quorum, and it names some."""
    if not config.servers and not config.distributed:
        return  # its server runs standalone
    if not config.view.contains_quorum(config.view.voters):
        problem = "all its servers together are not a quorum"
        right = "name a zoo.cfg with server.N lines, or a dynamicConfigFile that has them"
        raise input_error(config.file, problem, right)


def check_together(given: list[ServerFiles], *, shared: bool) -> None:
    """Raises ConfigError where the files of one folder have different members, or a member has no file."""
    first = given[0]
    problems = [difference for state in given[1:] if (difference := _difference(first, state)) is not None]
    versioned = [files for files in given if files.config.reconfig_enabled]
    differing = next((files for files in versioned if files.view.version != versioned[0].view.version), None)
    if not problems and differing is not None:
        problem = f"the version of its dynamic file differs from {versioned[0].origin}"
        problems = [Problem(differing.origin, 0, problem, SAME)]
    for sid in () if problems or shared else sorted(first.view.members - {files.sid for files in given}):
        problem = f"it names server {sid}, for which there is no file in the folder"
        problems.append(Problem(first.origin, line_of(first.members, sid), problem, f"add the file of server {sid}"))
    if problems:
        raise ConfigError(tuple(problems))


def _difference(one: ServerFiles, other: ServerFiles) -> Problem | None:
    """The first difference between two files in the settings that all servers must share."""
    for alone, beside in ((other, one), (one, other)):
        if alone.view.standalone:
            problem = f"server {alone.sid} runs standalone by this file, and {beside.origin} is for server {beside.sid}"
            return Problem(alone.origin, 0, problem, "give a standalone server a folder of its own, as one state")
    mine, theirs = one.view, other.view
    for sid in sorted(mine.members ^ theirs.members):
        has, lacks = (other, one) if sid in theirs.members else (one, other)
        problem = f"it names server {sid}, and {lacks.origin} does not"
        return Problem(has.origin, line_of(has.members, sid), problem, SAME)
    for sid in sorted(mine.voters ^ theirs.voters):
        problem = f"the role of server {sid} is not the one that {one.origin} gives it"
        return Problem(other.origin, line_of(other.members, sid), problem, SAME)
    if mine.quorums != theirs.quorums:
        return Problem(other.origin, 0, f"its groups or weights differ from those of {one.origin}", SAME)
    return None


def with_namespace_of(state: Folder, other: Folder) -> Folder:
    """A state with the namespace of the other one, where its own input does not state it.

    It is taken only if the hosts of all servers that both states have are of this form. Otherwise the state stays as it
    is, and its `taken` says that the word stands for a name.
    """
    hosts = state.hosts
    if hosts is None or not hosts.is_open:
        return state
    addresses = addresses_of(other.servers) if other.hosts is None or not other.hosts.is_open else {}
    namespaces: dict[int, str] = {}
    for ordinal, sid in enumerate(sorted(state.view.members)):
        if names := {address.host for address in addresses.get(sid, ())} - WILDCARDS:
            namespaces[ordinal] = min(names)
    name = hosts.namespace_in(namespaces)
    if name is None:
        differ = f", and the hosts of {other.path} have another form" if namespaces else ""
        sentence = f"{NAMESPACE} stands for a name that {state.path} does not state{differ}"
        return replace(state, taken=(*state.taken, sentence))
    texts = [
        ServerText(sid, files.origin, files.text.replace(NAMESPACE, name), told=files.told, written=False)
        for sid, files in state.servers.items()
    ]
    sentences = (*state.taken, f"{NAMESPACE} is {name}: the hosts of {other.path} have this name")
    filled = state_of(state.path, texts, sentences)
    return replace(filled, working=state.working, leader=state.leader, volumes=state.volumes)


class _ConfigFile(NamedTuple):
    """A zoo.cfg in the folder `root`, its server, and the place of its id; without a server it is of all members."""

    path: Path
    root: Path
    sid: Sid | None = None
    because: str = ""
    by_myid: bool = False


def read_folder(path: Path) -> Folder:
    """The files of all servers of a folder. Raises ConfigError."""
    layout = _layout(path)
    parts = collected(partial(_server_files, file) for file in layout)
    servers = sorted((files for part in parts for files in part), key=lambda files: files.sid)
    shared = layout[0].sid is None
    check_together(servers, shared=shared)
    sentences = [f"{file.path} for server {file.sid} (by {file.because})" for file in layout]
    if shared:
        sentences = [f"{layout[0].path} for all its members ({', '.join(str(files.sid) for files in servers)})"]
    return Folder(str(path), {files.sid: files for files in servers}, tuple(sentences))


def _layout(path: Path) -> list[_ConfigFile]:
    """The files in a folder. Raises ConfigError if two of them belong to one server."""
    if path.is_file():
        return [_ConfigFile(path, path.parent)]
    if not path.is_dir():
        raise input_error(path, "the folder does not exist", "name a folder with zoo.cfg files")
    files = sorted(file for file in path.glob("*.cfg") if file.is_file())
    folders = sorted(file.parent for file in path.glob("*/zoo.cfg") if file.is_file())
    if files and folders:
        names = [", ".join(path.name for path in paths) for paths in (files, folders)]
        problem = f"there are {names[0]} and folders with a zoo.cfg ({names[1]})"
        raise input_error(path, problem, "keep one zoo.cfg for all, or a folder or a file for each server")
    if not files and not folders:
        raise input_error(path, "the folder has no zoo.cfg", "put zoo.cfg there, or N/zoo.cfg for each server N")
    if len(files) == 1:
        return [_ConfigFile(files[0], path)]
    owners: dict[Sid | None, _ConfigFile] = {}
    for file in [_of_folder(folder, path) for folder in folders] or [_of_file(file, path) for file in files]:
        if file.sid in owners:
            owner = owners[file.sid]
            problem = f"it is for server {file.sid} (by {file.because}), and {owner.path} is for server {owner.sid} too"
            right = "keep one file for each server, with its own myid"
            raise input_error(file.path, f"{problem} (by {owner.because})", right)
        owners[file.sid] = file
    return list(owners.values())


def _of_name(file: Path, root: Path, named: Path) -> _ConfigFile | None:
    """A file whose name, or that of its folder, has the id of its server."""
    match = NUMBERED.fullmatch(named.stem if named == file else named.name)
    place = "name" if named == file else "name of the folder"
    return _ConfigFile(file, root, required_integer(match[1]), f"the {place} {named.name}") if match else None


def _of_file(file: Path, root: Path) -> _ConfigFile:
    if config_file := _of_name(file, root, file):
        return config_file
    problem = "there are several files, and the name of this one does not say for which server it is"
    raise input_error(file, problem, "name it zoo-N.cfg, N being the number in that server's myid file")


def _of_folder(folder: Path, root: Path) -> _ConfigFile:
    file = folder / "zoo.cfg"
    sids: dict[Sid, Path] = {}
    for sid, place in _myids(folder, text_of(file) or "", root):
        sids.setdefault(sid, place)
    if len(sids) > 1:
        problem = "it is for " + " and ".join(f"server {sid} ({place})" for sid, place in sids.items())
        raise input_error(folder, problem, "write the same number into both files")
    for sid, place in sids.items():
        return _ConfigFile(file, root, sid, str(place), by_myid=True)
    if config_file := _of_name(file, root, folder):
        return config_file
    problem = "nothing says for which server this folder is"
    raise input_error(folder, problem, "put its myid next to zoo.cfg, or give the folder the number as its name")


def _myids(folder: Path, text: str, root: Path) -> Iterator[tuple[Sid, Path]]:
    """A server's ids in a copy of its files, with their places: none outside of the folder of the input."""
    folders = [folder]
    if match := re.search(r"^[ \t]*dataDir[ \t]*[=:][ \t]*(\S+)", text, re.MULTILINE):
        data_dir = Path(os.path.normpath(match[1]))
        top, inside = (Path(os.path.normpath(path.absolute())) for path in (root, folder / data_dir))
        if inside.is_relative_to(top) or inside.is_relative_to(top.resolve()):
            folders.append(folder / data_dir)
        elif data_dir.is_absolute():
            folders.append(folder / data_dir.name)
    for place in (path / "myid" for path in folders):
        if (number := text_of(place)) is not None:
            sid = integer(number.strip(), *LONG)
            if sid is None:
                problem = f"{number.strip()[:40]!r} is not a number"
                raise input_error(place, problem, "write the server's number alone", line=1)
            yield sid, place


def _server_files(file: _ConfigFile) -> list[ServerFiles]:
    text = text_of(file.path)
    if text is None:
        raise input_error(file.path, "it cannot be read", "name a readable zoo.cfg")
    name, reader = str(file.path), partial(dynamic_text, file.path.parent)
    config = parse_zoo_cfg(text, name, read=reader, complete=False)
    if not config.servers and not config.distributed and file.sid is None:
        file = _with_id(file, text)
    check_quorum(config)
    if config.servers and file.sid is not None and file.sid not in config.view.members:
        members = ", ".join(map(str, sorted(config.view.members)))
        problem = f"this is the file of server {file.sid} ({file.because}), and it names {members} only"
        right = f"add server.{file.sid}, or correct the id"
        if not file.by_myid:
            right += "; the id of a pod is usually its ordinal plus one: copy its myid into the folder"
        raise input_error(file.path, problem, right)
    files = []
    for sid in sorted(config.view.members) if file.sid is None else [file.sid]:
        poll()
        files.append(ServerText(sid, name, text, reader).parsed())
    return files


def _with_id(file: _ConfigFile, text: str) -> _ConfigFile:
    """The file of a standalone server that no line names, with its id. Raises ConfigError if nothing says it."""
    for sid, place in _myids(file.path.parent, text, file.root):
        return file._replace(sid=sid, because=str(place), by_myid=True)
    if config_file := _of_name(file.path, file.root, file.path):
        return config_file
    problem = "it has no server.N line, so its server runs standalone, and nothing says which id it has in the roll-out"
    right = "put a myid next to it, or name the file zoo-N.cfg or its folder N; for an ensemble add its server.N lines"
    raise input_error(file.path, problem, right)


def dynamic_text(folder: Path, name: str) -> str | None:
    """The text of a dynamic file. A relative path may lead one folder up, and no further."""
    path, relative = Path(name), Path(os.path.normpath(folder / name))
    near = not path.is_absolute() and relative.is_relative_to(os.path.normpath(folder.parent))
    places = [*([relative] if near else []), folder / path.name]
    return next((text for place in places if (text := text_of(place)) is not None), None)
