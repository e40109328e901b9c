"""Reads the present state of an interrupted roll-out by a diagnosis, or refuses to plan from it.

Rules of this module:

- A server is seen if it answers, or if nothing listens at its address. Files, disks and logs do not prove that it runs
  now. The other servers are `unseen`, and the plan is then not SAFE.
- An answer decides which file a server runs with, because a new file may wait for a restart. An answer does not state
  every key. The file in the folder decides about the others. Without a folder the server is `unstated`.
- A cause of the diagnosis refuses the plan, unless a mixture of old and new files explains it. So does a silent server
  that has to run, and one that looks for a leader although its file has a quorum that serves. A server that finds no
  leader by its file is a part of the state.
- A server to add or to remove does not run if nothing listens at its address.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from checker.command_table import called
from checker.diagnose.cause import CauseKind
from checker.diagnose.evidence import ServerEvidence
from checker.diagnose.report import Diagnosis, diagnose, servers_read
from checker.rollout.files.differences import Interruption, UnfitStateError, different_value, same_effect, same_files
from checker.rollout.inputs.folders import Folder, ServerFiles, addresses_of
from checker.rollout.inputs.live import NoAnswerError, Silence
from checker.rollout.orders import has_quorum
from checker.rollout.stages import whole
from spec.config import ConfigError, Problem
from spec.quorum import Sid
from spec.text import on_a_line

EXPLAINED = frozenset({CauseKind.OLD_FILE, CauseKind.RECONFIG_MIXED})
"""A mixture of old and new files explains these causes."""
NO_STATE = frozenset({Silence.NOT_LISTED, Silence.ENDED})
"""A server may serve in spite of these."""


def present_state(inputs: Sequence[str], old: Folder, new: Folder, down: frozenset[Sid] = frozenset()) -> Interruption:
    """Read the present state of a roll-out between two states; the servers in `down` do not run.

    Raises ConfigError for a server with a third file, and UnfitStateError where the ensemble must be mended first.
    """
    present = _Present(tuple(inputs), diagnose(inputs, _owners(old, new)), old, new, down)
    if (unfit := next(chain(present.causes(), present.faults()), None)) is not None:
        raise UnfitStateError((unfit,))
    if problems := tuple(present.problems()):
        raise ConfigError(problems)
    return Interruption(
        " ".join(inputs),
        present.applied,
        tuple(servers_read(present.diagnosis.situation.servers)),
        next(iter(present.diagnosis.situation.leaders), None),
        present.unseen,
        present.looking,
        present.unstated,
    )


def _owners(*folders: Folder) -> dict[str, Sid]:
    """The servers by the addresses of their client ports, as far as one server alone has an address."""
    owners: dict[str, Sid | None] = {}
    for folder in folders:
        hosts = addresses_of(folder.servers)
        for sid, files in folder.servers.items():
            names = {address.host for address in hosts.get(sid, ())} | {one.host.lower() for one in files.clients}
            for place in {f"{name}:{client.port}" for name in names for client in files.clients}:
                owners[place] = sid if owners.get(place, sid) == sid else None
    return {place: sid for place, sid in owners.items() if sid is not None}


@dataclass(frozen=True)
class _Present:
    """The servers of a roll-out, by a diagnosis."""

    inputs: tuple[str, ...]
    diagnosis: Diagnosis
    old: Folder
    new: Folder
    down: frozenset[Sid]

    @cached_property
    def sids(self) -> tuple[Sid, ...]:
        """The servers of the roll-out and of the evidence."""
        return tuple(sorted({*self.diagnosis.situation.by_sid, *self.old.servers, *self.new.servers}))

    @cached_property
    def lasting(self) -> frozenset[Sid]:
        """The servers that run before and after."""
        return frozenset(self.old.servers.keys() & self.new.servers.keys())

    @property
    def _path(self) -> str:
        return on_a_line(" ".join(self.inputs))

    def _evidence(self, sid: Sid) -> ServerEvidence | None:
        return self.diagnosis.situation.by_sid.get(sid)

    def _silence(self, sid: Sid) -> Silence | None:
        """The reason why the address of a server gives no state; None if it has no address or answers."""
        live = server.live if (server := self._evidence(sid)) is not None else None
        return live.silence if isinstance(live, NoAnswerError) else None

    def _runs(self, sid: Sid) -> bool | None:
        """Whether a server runs; None if nothing shows it."""
        server, silence = self._evidence(sid), self._silence(sid)
        if server is not None and (server.answers is not None or server.mode):
            return True
        if silence is Silence.STANDALONE and server is not None and server.view is not None and server.view.standalone:
            return True
        if silence is Silence.NOT_SERVING:
            return True
        return False if sid in self.down or silence is Silence.REFUSED else None

    def _files(self, sid: Sid) -> ServerFiles | None:
        """The files of a server that may run; None if they are unknown, or it does not run."""
        server = self._evidence(sid)
        if server is None or (sid not in self.lasting and self._runs(sid) is False and sid not in self.down):
            return None
        if not self._fits_both(sid):
            return server.effective
        return None if server.files is server.running else server.files

    def _fits_both(self, sid: Sid) -> bool:
        """Whether an answer fits two different files of its server."""
        running = server.running if (server := self._evidence(sid)) is not None else None
        if running is None or sid not in self.lasting:
            return False
        files = (self.old.servers[sid], self.new.servers[sid])
        return not same_files(*files) and all(same_files(running, side) for side in files)

    @cached_property
    def unseen(self) -> frozenset[Sid]:
        """Servers without an answer, and without a closed port."""
        return frozenset(sid for sid in self.sids if self._runs(sid) is None)

    @cached_property
    def unstated(self) -> frozenset[Sid]:
        """Servers without a folder whose answers fit both files, where an important key differs."""
        unknown = (sid for sid in self.lasting if self._fits_both(sid) and self._files(sid) is None)
        return frozenset(sid for sid in unknown if not same_effect(self.old.servers[sid], self.new.servers[sid]))

    @cached_property
    def applied(self) -> frozenset[Sid]:
        """The servers that have their new file, or have stopped because the new state does not have them."""
        return frozenset(sid for sid in self.sids if same_files(self._files(sid), self.new.servers.get(sid)))

    @cached_property
    def looking(self) -> frozenset[Sid]:
        """Running servers that do not serve; all running servers, if no leader has a quorum."""
        situation = self.diagnosis.situation
        running = frozenset(
            sid for sid in self.sids if self._runs(sid) and self._silence(sid) is not Silence.STANDALONE
        )
        return running - {*situation.serving} if situation.has_quorum or self.unseen else running

    # Mistakes of the inputs.

    def problems(self) -> Iterator[Problem]:
        """Third files, and missing ones, as problems."""
        for sid in self.sids:
            server = self._evidence(sid)
            given = {} if server is None else {id(files): files for files in (server.running, server.files) if files}
            if given or not (sid in self.lasting or self._runs(sid)):
                yield from (problem for files in given.values() for problem in self._third(sid, files))
            else:
                when = "before and after the roll-out" if sid in self.lasting else "now"
                problem = f"there is no file of server {sid}, which runs {when}"
                yield Problem(self._path, 0, problem, "add the file that it runs with")
        for server in self.diagnosis.situation.servers:
            if server.sid is None and (server.files is not None or server.live is not None):
                if isinstance(server.live, NoAnswerError):
                    problem = f"{server.live.problems[0].what}, and no file says which server has this address"
                    right = "write the address as its `server.N` line and its clientPort have it"
                else:
                    problem, right = "nothing says which server this is", "put its myid beside its zoo.cfg"
                yield Problem(on_a_line(server.place), 0, problem, right)

    def _third(self, sid: Sid, files: ServerFiles) -> Iterator[Problem]:
        sides = [folder for folder in (self.old, self.new) if sid in folder.servers]
        if any(same_files(files, folder.servers[sid]) for folder in sides):
            return
        if not sides:
            problem = f"server {sid} is neither in {self.old.path} nor in {self.new.path}"
            yield Problem(files.origin, 0, problem, "remove its file, or add the server to one of them")
            return
        values = dict.fromkeys(different_value(files, folder.servers[sid]) for folder in sides)
        problem = f"the file of server {sid} is not the one in {' or '.join(folder.path for folder in sides)}"
        right = "give the file that the server runs with, equal to one of these"
        yield Problem(files.origin, 0, f"{problem}: {'; '.join(values)}", right)

    # States that must be mended first.

    @property
    def _diagnose(self) -> str:
        command = f"{called('diagnose')} {shlex.join(self.inputs)}"
        return f"`{on_a_line(command)}` says what is safe now"

    def causes(self) -> Iterator[Problem]:
        """The causes of the diagnosis that the roll-out does not explain."""
        for cause in self.diagnosis.causes:
            if cause.kind not in EXPLAINED:
                evidence = f" ({on_a_line(cause.evidence[0])})" if cause.evidence else ""
                problem = f"no roll-out goes on from this state: {cause.kind.value}. {cause.sentence.rstrip('.')}"
                yield Problem(self._path, 0, f"{problem}{evidence}", self._diagnose)

    def faults(self) -> Iterator[Problem]:
        """Silent servers first, then servers without a leader, as problems."""
        for fault in (self._silent_fault, self._fault):
            for sid in self.sids:
                if what := fault(sid):
                    yield Problem(self._place(sid), 0, what, self._diagnose)

    def _silent_fault(self, sid: Sid) -> str:
        live = server.live if (server := self._evidence(sid)) is not None else None
        if not isinstance(live, NoAnswerError) or live.silence in NO_STATE or self._runs(sid) or sid in self.down:
            return ""
        what = f"server {sid} gives no answer: {on_a_line(live.problems[0].what)}"
        return f"{what}. Start it, or name it with --down {sid} if it stays stopped" if sid in self.lasting else ""

    def _fault(self, sid: Sid) -> str:
        if sid in self.down and self._runs(sid):
            return f"server {sid} is in --down, and it runs"
        server = self._evidence(sid)
        if server is None or sid not in self.looking or self._finds_none(server):
            return ""
        return f"server {sid} runs and finds no leader, and its file does not explain it. Wait until it serves"

    def _place(self, sid: Sid) -> str:
        live = server.live if (server := self._evidence(sid)) is not None else None
        return live.address if live is not None else self._path

    def _finds_none(self, server: ServerEvidence) -> bool:
        """Whether its own file keeps a server from a leader: no quorum of that file serves."""
        serving = frozenset(self.diagnosis.situation.serving) - self.looking
        if serving:
            return server.view is None or not server.view.contains_quorum(serving)
        stage = replace(whole(self.old, self.new), applied=self.applied)
        return not has_quorum(stage, stage.running - self.down, stage.renewed)
