"""The evidence of a diagnosis: its inputs, joined by server.

    DIR                     a folder of one server, or of folders of servers
    DIR/N/zoo.cfg           its configuration, also in conf/
    DIR/N/data/version-2    its data directory, with myid; its dataLogDir beside it
    DIR/N/zookeeper.log     its log
    DIR/zoo-N.cfg           its configuration alone; a single file is that of all its members
    HOST:PORT,HOST:PORT     servers that may run: `conf`, `srvr` and `mntr` are asked; nothing is changed
    http://HOST:PORT        the AdminServer of a server that may run

Rules of this module:

- A part that cannot be read is evidence, too. It never ends the diagnosis; `ServerEvidence.faults` has a sentence.
- The myid says whose folder it is, then the number in the name of the folder. Two folders with one myid are two
  places; both are kept. A folder that is given twice is one place. A myid beside a zoo.cfg, without `version-2`, is no
  data directory.
- An address belongs to the folder whose server answers there by its id. A silent one belongs to the server that its
  reader knows there, or to the only folder with its client port; of several, to the one whose server has its host;
  that of an AdminServer by its host.
- A server runs with the configuration of its answer. Its file is the one for its next start.
- Nothing is written, and no session is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from checker.diagnose.messages import LogEvidence, read_log
from checker.recover.evidence import hidden, paired
from checker.rollout.inputs.documents import input_error
from checker.rollout.inputs.folders import NUMBERED, ServerFiles, dynamic_text, text_of
from checker.rollout.inputs.live import LiveServer, NoAnswerError, Silence, answers_of, is_live, is_path, texts_of
from checker.rollout.inputs.sources import YAML
from checker.user_files import holds
from refimpl.disk.files import VERSION_DIRECTORY
from refimpl.disk.survey import MYID, DiskSurvey, survey
from spec.config import ConfigError, parse_ensemble, parse_zoo_cfg
from spec.quorum import Sid, View
from spec.text import INT, LONG, integer, on_a_line, required_integer

DEEPEST = 3
"""How many folders below an input are looked through."""
MOST_FILES = 10_000
"""The largest number of entries of the folders of one input."""
NEXT = ".dynamic.next"
LOG_FILE = re.compile(r".*\.(?:log|out)(?:\.[0-9]+)?|zookeeper.*\.log.*", re.IGNORECASE)


@dataclass(frozen=True)
class ServerEvidence:
    """All that the inputs say of one server.

    `place` is the folder, or the address, as the user has named it. `sid` is None where nothing says it. `live` is the
    answer of its address, or the error of asking; None without an address. `running` is the configuration in that
    answer. `next_view` is the configuration in a `.next` (`next_path`): its server has acknowledged it, and not
    activated it. `faults` are sentences about parts that cannot be used. `unread` is the reason why a data directory is
    there, and was not read: this user may not. It counts as not given.
    """

    place: str
    sid: Sid | None = None
    files: ServerFiles | None = None
    disk: DiskSurvey | None = None
    live: LiveServer | NoAnswerError | None = None
    running: ServerFiles | None = None
    log: LogEvidence | None = None
    next_path: str = ""
    next_view: View | None = None
    faults: tuple[str, ...] = ()
    unread: str = ""

    @property
    def name(self) -> str:
        """The name of the server for a reader."""
        return f"the server in {self.place}" if self.sid is None else f"server {self.sid}"

    @property
    def sids(self) -> tuple[Sid, ...]:
        """The id of the server, if it is known."""
        return () if self.sid is None else (self.sid,)

    @property
    def data(self) -> DiskSurvey | None:
        """The disk, if there is data on it."""
        return None if self.disk is None or self.disk.is_empty else self.disk

    @property
    def answers(self) -> LiveServer | None:
        """The answer of its address, if it has one."""
        return self.live if isinstance(self.live, LiveServer) else None

    @property
    def effective(self) -> ServerFiles | None:
        """The configuration that it runs with, by its own answer, or else by its files; None if neither states it."""
        return self.running or self.files

    @property
    def view(self) -> View | None:
        """The view that it runs with."""
        return self.effective.view if self.effective is not None else None

    @property
    def mode(self) -> str:
        """The role that it answers; empty without one."""
        return "" if self.live is None else self.live.mode


def evidence(inputs: Iterable[str], owners: Mapping[str, Sid] | None = None) -> tuple[ServerEvidence, ...]:
    """All evidence of some inputs, by server; `owners` are the servers of addresses (HOST:PORT) that may be silent.

    Raises ConfigError for an input that is neither a path nor addresses.
    """
    places: list[ServerEvidence] = []
    answers: list[LiveServer | NoAnswerError] = []
    for text in inputs:
        path = Path(text)
        if is_path(path):
            places += _of_path(path)
        elif is_live(text):
            answers += answers_of(text)
        else:
            raise input_error(on_a_line(text[:80]), "there is no such file or folder", "name one, or HOST:PORT")
    servers = _joined(places, answers, owners or {})
    return tuple(sorted(servers, key=lambda server: (server.sid is None, server.sid or 0)))


# Folders.


def _of_path(path: Path) -> Iterator[ServerEvidence]:
    if not holds(path.is_dir):
        yield from _of_file(path)
        return
    entries = _entries(path)
    trees = {child: _paths(child) for child in entries if holds(child.is_dir) and child.name != VERSION_DIRECTORY}
    children = {child: files for child, files in trees.items() if _is_marked(files)}
    own = [entry for entry in entries if entry.name == VERSION_DIRECTORY or not holds(entry.is_dir)]
    configs = [file for file in own if file.suffix == ".cfg"]
    shared = next(iter(configs), None)
    numbered = any(NUMBERED.fullmatch(child.name) for child in children)
    whole = (_is_marked(own) and shared is None) or (len(children) < 2 and not numbered)
    if configs and not children and not NUMBERED.fullmatch(path.name) and not _is_marked(own, NEXT):
        for config in configs:
            yield from _of_file(config, alone=len(configs) > 1)
    elif whole or _names_a_child(shared, children):
        yield _of_folder(path, [*entries, *chain.from_iterable(trees.values())], None)
    else:
        for child, files in children.items():
            yield _of_folder(child, files, shared)


def _names_a_child(config: Path | None, children: Iterable[Path]) -> bool:
    """Whether the data directory of a file has the name of one of these folders, which are then parts of one server."""
    text = "" if config is None else text_of(config) or ""
    names = {Path(match[1]).name for match in re.finditer(r"^\s*data(?:Log)?Dir\s*[=:]\s*(\S+)", text, re.MULTILINE)}
    return any(child.name in names for child in children)


def _entries(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


def _paths(folder: Path, depth: int = DEEPEST) -> list[Path]:
    """The files and folders below a folder, those of a version directory excepted."""
    paths = list[Path]()
    for entry in _entries(folder):
        paths.append(entry)
        if depth and holds(entry.is_dir) and not entry.is_symlink() and entry.name != VERSION_DIRECTORY:
            paths += _paths(entry, depth - 1)
        if len(paths) > MOST_FILES:
            raise input_error(folder, f"there are more than {MOST_FILES} entries in it", "name the folders of servers")
    return paths


def _is_marked(paths: Iterable[Path], ending: str = ".cfg") -> bool:
    """Whether these paths are those of a server: a data directory, a myid, a log, or a file with this ending."""
    names = [path.name for path in paths]
    return any(name in (VERSION_DIRECTORY, MYID) or name.endswith(ending) or LOG_FILE.fullmatch(name) for name in names)


def _of_folder(folder: Path, paths: list[Path], shared: Path | None) -> ServerEvidence:
    """The evidence in the folder of one server."""
    versions = {path.parent for path in paths if path.name == VERSION_DIRECTORY}
    configs = {path.parent for path in paths if path.suffix == ".cfg"}
    myids = {path.parent: path for path in paths if path.name == MYID}
    data = sorted(versions | (myids.keys() - configs))
    with_id = [path for path in data if holds((path / MYID).is_file)]
    place = paired(data) or next(((path, path) for path in with_id or data), None)
    unread = "" if place is None else hidden(*place)
    disk = None if place is None or unread else survey(*place)
    config = next((path for path in paths if path.suffix == ".cfg"), shared)
    logs = [path for path in paths if LOG_FILE.fullmatch(path.name) and holds(path.is_file)]
    server = ServerEvidence(str(folder), disk.myid.value if disk is not None else None, disk=disk, unread=unread)
    if logs:
        server = replace(server, log=read_log(max(logs, key=lambda path: path.stat().st_mtime)))
    if server.sid is None:
        written = (integer((text_of(path) or "").strip(), *LONG) for path in myids.values())
        server = replace(server, sid=next((sid for sid in written if sid is not None), _number(folder.name)))
    if (pending := next((path for path in paths if path.name.endswith(NEXT)), None)) is not None:
        server = _with_next(server, pending)
    return server if config is None else _with_config(server, config)


def _number(name: str) -> Sid | None:
    """The id in the name of a file or folder."""
    number = NUMBERED.fullmatch(name)
    return required_integer(number[1]) if number is not None else None


def _with_config(server: ServerEvidence, path: Path) -> ServerEvidence:
    text = text_of(path)
    if text is None:
        return replace(server, faults=(*server.faults, f"{path} cannot be read"))
    reader = partial(dynamic_text, path.parent)
    try:
        config = parse_zoo_cfg(text, str(path), read=reader, complete=False)
    except ConfigError as error:
        return replace(server, faults=(*server.faults, *_sentences(error)))
    dynamic = None if config.dynamic_config_file is None else reader(config.dynamic_config_file)
    return replace(server, files=ServerFiles(server.sid or 0, str(path), text, dynamic, config))


def _with_next(server: ServerEvidence, path: Path) -> ServerEvidence:
    try:
        view = parse_ensemble(text_of(path) or "", str(path)).view
    except ConfigError as error:
        return replace(server, faults=(*server.faults, *_sentences(error)))
    return replace(server, next_path=str(path), next_view=view)


def _sentences(error: ConfigError) -> tuple[str, ...]:
    return tuple(on_a_line(str(problem)) for problem in error.problems)


def _of_file(path: Path, *, alone: bool = False) -> Iterator[ServerEvidence]:
    """The evidence in one file: a configuration, of all its members unless it stands for one `alone`, or a log."""
    if path.suffix == ".cfg":
        server = _with_config(ServerEvidence(str(path), _number(path.stem)), path)
        sids = sorted(server.files.config.view.members) if server.files is not None and not alone else []
        for sid in sids:
            yield _with_config(ServerEvidence(str(path), sid), path)
        if not sids:
            yield server
    elif path.suffix in YAML:
        problem = "a manifest states what is to run, and not what runs"
        raise input_error(path, problem, "name addresses (HOST:PORT,...), or folders")
    else:
        log = read_log(path)
        yield ServerEvidence(str(path), log.sid, log=log)


# Addresses.


def _told_apart(answers: Iterable[LiveServer | NoAnswerError]) -> list[LiveServer | NoAnswerError]:
    """One answer for each address. Of two ports of a kind that answer as one server, the later one is an error."""
    apart: dict[str, LiveServer | NoAnswerError] = {}
    owners: dict[tuple[Sid, bool], str] = {}
    for answer in answers:
        address = answer.address
        apart.setdefault(address, answer)
        if isinstance(answer, LiveServer):
            twin = owners.setdefault((answer.sid, bool(answer.membership)), address)
            if twin != address:
                problem = f"it answers as server {answer.sid} with the role {answer.mode}, as {twin} does"
                right = "name each server once, by its own address; stop one of them if two servers have this id"
                apart[address] = NoAnswerError(Silence.STRANGER, address, problem, right)
    return list(apart.values())


def _united(answers: Iterable[LiveServer | NoAnswerError]) -> list[LiveServer | NoAnswerError]:
    """The answers, those of one server at its client port and its AdminServer joined; errors are the last."""
    answers = _told_apart(answers)
    servers = [answer for answer in answers if isinstance(answer, LiveServer)]
    hosts = {answer.address: answer.address.removeprefix("http://").rpartition(":")[0] for answer in servers}
    for admin in [server for server in servers if not server.membership]:
        twins = (one for one in servers if one.membership and one.sid == admin.sid)
        twin = next((one for one in twins if hosts[one.address] == hosts[admin.address]), None)
        if twin is not None:
            servers.remove(admin)
            figures = {**admin.figures, **twin.figures}
            more = replace(twin, voting_view=admin.voting_view, follows=admin.follows, figures=figures)
            servers[servers.index(twin)] = more
    known = {f"{hosts[server.address]}:{server.settings.get('clientPort')}" for server in servers}
    errors = [answer for answer in answers if isinstance(answer, NoAnswerError)]
    unknown = (one for one in errors if one.silence is not Silence.NOT_LISTED or one.address not in known)
    return [*servers, *unknown]


def _joined(
    places: Iterable[ServerEvidence], answers: Iterable[LiveServer | NoAnswerError], owners: Mapping[str, Sid]
) -> Iterator[ServerEvidence]:
    answers = _united(list(answers))
    stated = (answer for answer in answers if isinstance(answer, LiveServer) and answer.membership)
    texts = {text.origin: text for text in texts_of(stated)}
    servers = _merged(places)
    for answer in answers:
        address = answer.address
        sid = answer.sid if isinstance(answer, LiveServer) else owners.get(address.lower())
        server = _owner(servers, address, sid)
        if server is None:
            server = ServerEvidence(address, sid)
        else:
            servers.remove(server)
        server = replace(server, live=answer)
        if address in texts:
            try:
                files = texts[address].parsed()
                server = replace(server, files=server.files or files, running=files)
            except ConfigError as error:
                server = replace(server, faults=(*server.faults, *_sentences(error)))
        yield server
    yield from servers


def _merged(places: Iterable[ServerEvidence]) -> list[ServerEvidence]:
    """The places, with what several inputs say of one server joined: a log file, a configuration, a folder."""
    servers: list[ServerEvidence] = []
    for place in places:
        alike = (server for server in servers if server.sid == place.sid and place.sid is not None)
        twin = next((server for server in alike if _have_one_disk(server, place)), None)
        if twin is None:
            servers.append(place)
        else:
            servers.remove(twin)
            main, other = (place, twin) if twin.disk is None and place.disk is not None else (twin, place)
            files, log, pending = main.files or other.files, main.log or other.log, main if main.next_path else other
            faults = tuple(dict.fromkeys(main.faults + other.faults))
            main = replace(main, files=files, log=log, faults=faults)
            servers.append(replace(main, next_path=pending.next_path, next_view=pending.next_view))
    return servers


def _have_one_disk(one: ServerEvidence, other: ServerEvidence) -> bool:
    """Whether two places have at most one data directory: an input may be given twice, or be a folder of another."""
    disks = [server.disk for server in (one, other) if server.disk is not None]
    return len({os.path.realpath(disk.data_dir) for disk in disks}) < 2


def _owner(servers: list[ServerEvidence], address: str, sid: Sid | None) -> ServerEvidence | None:
    silent = [server for server in servers if server.live is None]
    if sid is not None:
        return next((server for server in silent if server.sid == sid), None)
    is_admin = address.startswith("http://")
    host, _, port = address.removeprefix("http://").rpartition(":")
    number = integer(port, 0, INT[1])
    owners = [server for server in silent if server.files is not None and (is_admin or _clients(server, number))]
    if len(owners) > 1 or is_admin:
        owners = [server for server in owners if host in {*_clients(server, number), *_hosts(servers, server.sid)}]
    return owners[0] if len(owners) == 1 else None


def _clients(server: ServerEvidence, port: int | None) -> list[str]:
    """The hosts of the client addresses of a server with this port, by its own files."""
    return [] if server.files is None else [client.host for client in server.files.clients if client.port == port]


def _hosts(servers: Iterable[ServerEvidence], sid: Sid | None) -> Iterator[str]:
    """The hosts of a server by the files of all."""
    for server in servers:
        line = server.files.config.server(sid) if server.files is not None and sid is not None else None
        if line is not None:
            yield from (address.host for address in line.addresses)
