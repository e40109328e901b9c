"""From two folders to the stages of a roll-out: what every server has before each stage, and after it.

A change that is safe in one go is one stage. Else voters come and go one by one, each arrival or departure a stage of
its own, and the files of the stages between are written here.

Rules of this module:

- A file of a stage between is that server's own file with other `server.N` lines; nothing else in it is touched. The
  last stage has the files of the second folder as they are.
- A voter that arrives comes before one that leaves, and they take turns, so that the ensemble is never smaller than it
  was, nor larger than it must be.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, zip_longest

from checker.execution import poll
from checker.rollout.config_state import ConfigState, side_of, with_names
from checker.rollout.files.differences import Difference, Interruption, differences, masked
from checker.rollout.files.keys import Effect, occupied, strangers
from checker.rollout.inputs.folders import Folder, ServerText, settings
from spec.config import Config, ConfigError
from spec.quorum import Majority, Sid, View

MEMBERS = re.compile(r"[ \t\f]*(?:server\.|group|weight)")


@dataclass(frozen=True)
class Stage:
    """One change of members, from one state to the next; `title` describes it.

    `applied` are the servers with their new files when the stage begins: started with them, or already stopped if the
    new state does not have them. There are such servers only if a roll-out was interrupted. `outdated` are servers that
    return to old hosts, where their disks lack the writes since they left. `absent` are servers of the old state that
    have never run, on the way back from a roll-out that did not come to them. `now` is the state that was seen when the
    roll-out was interrupted.
    """

    old: ConfigState
    new: ConfigState
    title: str
    applied: frozenset[Sid] = frozenset()
    outdated: frozenset[Sid] = frozenset()
    absent: frozenset[Sid] = frozenset()
    now: Interruption | None = None

    @cached_property
    def restarted(self) -> tuple[Sid, ...]:
        """The servers to restart: members before and after, ascending."""
        return tuple(sorted((self.old.members & self.new.members) - self.applied))

    @cached_property
    def added(self) -> tuple[Sid, ...]:
        """The servers to start, ascending."""
        return tuple(sorted(self.new.members - self.old.members - self.applied))

    @cached_property
    def removed(self) -> tuple[Sid, ...]:
        """The servers to stop, ascending."""
        return tuple(sorted(self.old.members - self.new.members - self.applied))

    @cached_property
    def remaining(self) -> tuple[Sid, ...]:
        """The servers to start, restart or stop, ascending."""
        return tuple(sorted((*self.restarted, *self.added, *self.removed)))

    @cached_property
    def renewed(self) -> frozenset[Sid]:
        """The servers that run with their new files when the stage begins."""
        return self.applied & self.new.members

    @cached_property
    def running(self) -> frozenset[Sid]:
        """The servers that run when the stage begins."""
        return (self.old.members - self.applied) | self.renewed

    @cached_property
    def started(self) -> frozenset[Sid]:
        """The servers that may run when the stage begins: those that run, and those that were stopped before."""
        return self.running | (self.old.members & self.applied - self.absent)

    @property
    def looking(self) -> frozenset[Sid]:
        """The servers that run without a leader when the stage begins, by the evidence and by their files."""
        return self.now.looking if self.now is not None else frozenset()

    @cached_property
    def sids(self) -> tuple[Sid, ...]:
        """All servers that run at some time, ascending."""
        return tuple(sorted(self.running | self.new.members))

    def config_of(self, sid: Sid, renewed: frozenset[Sid]) -> Config:
        """The configuration of a server if these servers have their new files."""
        return (self.new if sid in renewed else self.old).servers[sid].config

    def view_of(self, sid: Sid, renewed: frozenset[Sid]) -> View:
        """The view of a server if these servers have their new files."""
        return (self.new if sid in renewed else self.old).view

    @cached_property
    def changed_roles(self) -> frozenset[Sid]:
        """The servers that are observers in one state and voters in the other."""
        old, new = self.old.view, self.new.view
        return (old.observers & new.voters) | (old.voters & new.observers)

    @cached_property
    def readdressed(self) -> tuple[Sid, ...]:
        """The servers whose host, quorum port or election port differs between the two states, ascending."""
        return self.old.readdressed(self.new)

    @cached_property
    def moved(self) -> tuple[Sid, ...]:
        """The servers to restart on another host, ascending. Its disk is empty, unless the old one is moved there."""
        return tuple(sid for sid in self.old.moved(self.new) if sid in self.remaining)

    @property
    def uncertain(self) -> tuple[Sid, ...]:
        """The servers whose hosts differ, and that accept connections to every host name, ascending.

        Whether a host name of the other file reaches such a server depends on the network.
        """
        moved = (sid for sid in self.readdressed if self.old.hosts(sid) != self.new.hosts(sid))
        return tuple(sid for sid in moved if self.old.accepts_every_host(sid) or self.new.accepts_every_host(sid))

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """The keys that differ between the two files of a server."""
        return differences(self.old.servers, self.new.servers)

    def keys_with(self, *effects: Effect) -> tuple[str, ...]:
        """The keys that differ, or may differ, and that have one of these effects, without repetitions."""
        return tuple(dict.fromkeys(difference.key for difference in self.differences if difference.effect in effects))

    @cached_property
    def strangers(self) -> tuple[tuple[Sid, Sid], ...]:
        """The pairs of servers that refuse each other's connections in some state of the stage."""
        return strangers(self.old.servers, self.new.servers)

    @cached_property
    def unchanged(self) -> bool:
        """Whether no step changes a configuration as far as it is modelled."""
        if not self.remaining:
            return self.new.agreed
        modelled = any(difference.effect is Effect.MODELLED for difference in self.differences)
        return self.old.members == self.new.members and self.old.agreed and not modelled

    @property
    def standalone(self) -> bool:
        """Whether a server runs standalone before or after."""
        return self.old.view.standalone or self.new.view.standalone

    @property
    def states_versions(self) -> bool:
        """Whether a file states the version of its configuration."""
        return self.old.view.version > 0 or self.new.view.version > 0

    @cached_property
    def gossips(self) -> bool:
        """Whether configurations have versions, which servers send each other.

        A file need not state a version: with `reconfigEnabled` a leader gives one to the configuration that it
        establishes (`Leader.lead`, `QuorumPeer.setLastSeenQuorumVerifier`). That has an effect if the members change.
        """
        servers = (files for state in (self.old, self.new) for files in state.servers.values())
        # A standalone server has no leader, and no versions.
        enabled = not self.standalone and any(files.config.reconfig_enabled for files in servers)
        return self.states_versions or self.mixes_reconfig or (self.changes_members and enabled)

    @property
    def changes_members(self) -> bool:
        """Whether members, roles, quorums or peer addresses change."""
        old, new = ((state.view.voters, state.view.observers, state.view.quorums) for state in (self.old, self.new))
        return old != new or bool(self.readdressed or self.new.names or self.old.names)

    @property
    def mixes_reconfig(self) -> bool:
        """Whether some servers of one state have `reconfigEnabled=true`, and others of it do not."""
        states = ({files.config.reconfig_enabled for files in state.servers.values()} for state in (self.old, self.new))
        return any(len(enabled) > 1 for enabled in states)

    @cached_property
    def disables_reconfig(self) -> tuple[Sid, ...]:
        """The servers whose new files have no `reconfigEnabled` while their old ones have it, ascending.

        Measured on 3.9.5: such a server does not follow the others, whose configuration has a version by then. None if
        no other server has it now.
        """
        new = self.new.servers
        enabled = {sid for sid in self.running if self.config_of(sid, self.renewed).reconfig_enabled}
        if self.standalone or len(enabled) < 2:
            return ()
        changed = enabled.intersection(self.remaining) & new.keys()
        return tuple(sid for sid in sorted(changed) if not new[sid].config.reconfig_enabled)

    @cached_property
    def texts(self) -> dict[str, str]:
        """Every file of the stage by its name, for scenarios: without the values of passwords."""
        return {name: masked(text) for name, text in {**self.old.modelled_texts, **self.new.modelled_texts}.items()}


def whole(old: Folder, new: Folder, now: Interruption | None = None) -> Stage:
    """The change in one go, or the rest of it where some servers have their new files."""
    before, after = side_of(old, "before"), side_of(new, "after")
    return Stage(before, after, _title(before, after), frozenset() if now is None else now.applied, now=now)


def reverse(stage: Stage) -> Stage:
    """The way back: from the state in which a stage begins to its old state."""
    same = (stage.old.members & stage.new.members) - {difference.sid for difference in stage.differences}
    applied = ((stage.old.members | stage.new.members) - stage.applied) | same
    title = _title(stage.new, stage.old)
    return Stage(stage.new, stage.old, title, applied, absent=frozenset(stage.added), now=stage.now)


def one_at_a_time(old: Folder, new: Folder) -> tuple[tuple[Stage, ...], str]:
    """The change in stages; each adds, removes, promotes or demotes one voter, or changes the address of one server.

    There is none if stages are no alternative: at most one server changes, the quorums are of groups and weights, whose
    intermediate states are unknown, or ZooKeeper refuses a file between the two states. Then the second value is the
    reason, which is empty otherwise.
    """
    views = old.view, new.view
    # Standalone files have no addresses for peers, and groups and weights have no states between.
    if all(view.standalone for view in views) or not all(isinstance(view.quorums, Majority) for view in views):
        return (), ""
    ordinals = old.working.ordinals if old.working is not None else {}  # a StatefulSet removes its last pod
    arriving = sorted(new.view.voters - old.view.voters)
    leaving = sorted(old.view.voters - new.view.voters, key=lambda sid: (-ordinals.get(sid, 0), sid))
    turns = [sid for pair in zip_longest(arriving, leaving) for sid in pair if sid is not None]
    if any(view.standalone for view in views):  # no state between runs standalone
        turns = [*arriving, *leaving]
    before, after = side_of(old, "before"), side_of(new, "after")
    turns += [sid for sid in before.readdressed(after) if sid not in turns]
    try:
        between = [_between(old, new, set(turns[:number]), f"step-{number}") for number in range(1, len(turns))]
    except ConfigError as error:
        return (), f"{error.problems[0].file}: {error.problems[0].what}"
    pairs = tuple(pairwise([before, *between, after])) if between else ()
    for problem in (problem for state, following in pairs for problem in occupied(state.servers, following.servers)):
        return (), f"{problem.file}: {problem.what}"
    return tuple(Stage(state, following, _title(state, following)) for state, following in pairs), ""


def _between(old: Folder, new: Folder, changed: set[Sid], label: str) -> ConfigState:
    """The state after these servers have changed; the rest is as before.

    A server has its old file, unless the input of that one states a part of the keys only. The line of a server is that
    of its reader's own file, or else of a third server's: in its own file it may have a wildcard as the host.
    """
    members = sorted((old.servers.keys() - changed) | (new.servers.keys() & changed))
    sources = {}
    for sid in members:  # a standalone folder comes last, since its file lacks what members need
        folders = sorted((new, old) if sid in changed else (old, new), key=lambda folder: folder.view.standalone)
        sources[sid] = next(folder for folder in folders if sid in folder.servers)
    servers = {}
    for sid in members:
        poll()
        owned = [folder.servers[sid] for folder in (old, new) if sid in folder.servers and not folder.view.standalone]
        source = min(owned or [sources[sid].servers[sid]], key=lambda files: files.told is not None)
        lines = {member: f"server.{member}={_value(sources[member], sid, member)}" for member in members}
        text, dynamic = source.text, source.dynamic
        if dynamic is None:
            text = _with_members(text, lines)
        else:
            dynamic = _with_members(dynamic, lines)
        files = ServerText(sid, label, text, {source.config.dynamic_config_file or "": dynamic or ""}.get).parsed()
        servers[sid] = replace(files, config=with_names(files.config, new.names))
    return ConfigState(label, servers, given=False, names=new.names)


def _value(folder: Folder, reader: Sid, sid: Sid) -> str:
    """The value of the line of a server as `reader` sees it."""
    files = [other_files for owner, other_files in folder.servers.items() if owner != sid]
    source = folder.servers.get(reader) or (files or [folder.servers[sid]])[0]
    return settings(source)[f"server.{sid}"]


def _with_members(text: str, lines: Mapping[Sid, str]) -> str:
    rest: list[str] = []
    place, continued, member = None, False, False
    for line in text.splitlines():
        member = member if continued else MEMBERS.match(line) is not None
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        if not member:
            rest.append(line)
        elif place is None:
            place = len(rest)
    place = len(rest) if place is None else place
    return "\n".join([*rest[:place], *(lines[sid] for sid in sorted(lines)), *rest[place:]]) + "\n"


def _title(old: ConfigState, new: ConfigState) -> str:
    changes = ", ".join(_changes(old, new))
    return f"{_members(old.view)} to {_members(new.view)}" + (f" ({changes})" if changes else "")


def _members(view: View) -> str:
    if view.standalone:
        return f"standalone {listed(view.voters)}"
    watching = f" and observers {{{listed(view.observers)}}}" if view.observers else ""
    return f"{{{listed(view.voters)}}}{watching}"


def listed(sids: Iterable[Sid]) -> str:
    """The servers, ascending."""
    return ", ".join(map(str, sorted(sids)))


def _changes(before: ConfigState, after: ConfigState) -> Iterator[str]:
    old, new = before.view, after.view
    moved = before.moved(after)
    for words, sids in (
        ("adds {}", new.members - old.members),
        ("removes {}", old.members - new.members),
        ("promotes {} from observer to voter", old.observers & new.voters),
        ("demotes {} from voter to observer", old.voters & new.observers),
        ("moves {} to another host", frozenset(moved)),
        ("changes the peer addresses of {}", frozenset(before.readdressed(after)) - set(moved)),
    ):
        if sids:
            yield words.format(listed(sids))
    if old.voters == new.voters and old.quorums != new.quorums:
        yield "changes groups or weights"
