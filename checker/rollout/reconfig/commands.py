"""The `reconfig` commands of a change: each with the members before and after it, and the servers to start and to stop;
and the reasons against them: refusals of ZooKeeper, and changes that are not judged here.

Rules of this module:

- One at a time, a voter that arrives comes before one that leaves, in turns, so that the ensemble is never smaller than
  before nor larger than necessary. Observers change no quorum: those that come are one command, those that go another.
- A joiner starts before its command. Its file lists the present members and itself, in the role that it gets.
- A server that leaves is stopped after the reply.

Source: ZooKeeper Dynamic Reconfiguration Guide, "Adding servers"; `ReconfigCommand.parse`; kazoo
`KazooClient.reconfig`; `PrepRequestProcessor.pRequest2Txn` (reconfig), `QuorumPeer.processReconfig`; the runs in
docs/reference-reconfig-facts.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from msgspec.structs import replace

from checker.rollout.inputs.folders import Folder
from checker.rollout.stages import Stage
from checker.symbolic.disjoint import DisjointQuorums, disjoint_quorums
from spec.config.server_line import ANY_ADDRESS, render_server
from spec.quorum import Majority, MembershipChange, Sid, View, changed


class RouteKind(Enum):
    """The ways to divide a change into commands."""

    ONE_AT_A_TIME = "one-at-a-time"
    AT_ONCE = "at-once"


@dataclass(frozen=True)
class MembershipCommand:
    """One `reconfig` command.

    `lines` has the value of `server.N` for each server of the change, with the role that it has after it:
    `host:2888:3888:participant;2181`.
    """

    before: View
    after: View
    change: MembershipChange
    lines: Mapping[Sid, str]

    @property
    def named(self) -> tuple[Sid, ...]:
        """The servers that `-add` names, ascending."""
        return tuple(sorted(self.change.voters | self.change.observers))

    @property
    def leaving(self) -> tuple[Sid, ...]:
        """The servers that `-remove` names, ascending."""
        return tuple(sorted(self.change.leaving))

    @property
    def joiners(self) -> tuple[Sid, ...]:
        """The servers to start before the command, ascending."""
        return tuple(sid for sid in self.named if sid not in self.before.members)

    @property
    def joining_text(self) -> str:
        """The servers that `-add` names, each as `server.N=...`, separated by commas; empty if it names none."""
        return ",".join(f"server.{sid}={self.lines[sid]}" for sid in self.named)

    @property
    def leaving_text(self) -> str:
        """The ids that `-remove` names, separated by commas; empty if it names none."""
        return ",".join(map(str, self.leaving))

    @property
    def zkcli(self) -> str:
        """The command for `zkCli.sh`."""
        remove = [f"-remove {self.leaving_text}"] if self.leaving else []
        add = [f'-add "{self.joining_text}"'] if self.named else []
        return " ".join(("reconfig", *remove, *add))

    @property
    def kazoo(self) -> str:
        """The same call for a client of kazoo."""
        joining, leaving = self.joining_text or None, self.leaving_text or None
        return f"client.reconfig(joining={joining!r}, leaving={leaving!r}, new_members=None, from_config=-1)"

    @property
    def disjoint(self) -> DisjointQuorums | None:
        """Two disjoint quorums, one before and one after the command; None if all of them meet.

        Raises checker.symbolic.disjoint.UndecidedError if the comparison is given up.
        """
        return disjoint_quorums(self.before, self.after)

    @property
    def promoted(self) -> frozenset[Sid]:
        """The observers that it makes voters."""
        return self.after.voters & self.before.observers

    @property
    def needed(self) -> tuple[Sid, ...]:
        """The voters each of which the commit needs, ascending, since the command makes observers voters.

        An observer acknowledges no proposal, and its notifications do not count. A voter that has seen the proposal and
        loses its connection can then not return, and the leader cannot commit without it
        (docs/findings/promotion-stops-service.md).
        """
        if not self.promoted:
            return ()
        voters = self.after.voters - self.promoted
        return tuple(sid for sid in sorted(voters) if not self.after.contains_quorum(voters - {sid}))

    def file_of(self, joiner: Sid) -> dict[Sid, str]:
        """The lines of the dynamic file of a joiner: the present members and itself."""
        return {sid: self.lines[sid] for sid in sorted((*self.before.members, joiner))}


def one_at_a_time(old: View, new: View, lines: Mapping[Sid, str]) -> tuple[MembershipCommand, ...]:
    """The change, one voter in each command. `lines` has a value for every server, with any role.

    The quorums of both views are majorities.
    """
    arriving, leaving = sorted(new.voters - old.voters), sorted(old.voters - new.voters)
    turns = [sid for pair in zip_longest(arriving, leaving) for sid in pair if sid is not None]
    parts = [_change_of((sid,), new) for sid in turns]
    parts.append(_change_of(new.observers - old.members, new))
    parts.append(_change_of(old.observers - new.members, new))
    return _commands(old, parts, lines)


def at_once(old: View, new: View, lines: Mapping[Sid, str]) -> tuple[MembershipCommand, ...]:
    """The change in one command, in the same form; empty if nothing changes."""
    changing = (old.voters ^ new.voters) | (old.observers ^ new.observers)
    return _commands(old, [_change_of(changing, new)], lines)


def _change_of(sids: Iterable[Sid], new: View) -> MembershipChange:
    """The change that gives these servers their places in the new view."""
    moved = frozenset(sids)
    return MembershipChange(moved & new.voters, moved & new.observers, moved - new.members)


def _commands(old: View, parts: Iterable[MembershipChange], lines: Mapping[Sid, str]) -> tuple[MembershipCommand, ...]:
    view, commands = old, list[MembershipCommand]()
    for part in parts:
        if part == MembershipChange():
            continue
        after = changed(view, part, old.version)
        assert after is not None  # majorities only
        roles = {sid: after if sid in after.members else view for sid in lines}
        with_roles = {sid: with_role(line, sid in roles[sid].observers) for sid, line in lines.items()}
        commands.append(MembershipCommand(view, after, part, with_roles))
        view = after
    return tuple(commands)


def with_role(line: str, observes: bool) -> str:
    """The value of a `server.N` line with a role; the line has one."""
    peers, _, client = line.partition(";")
    address, _, _ = peers.rpartition(":")
    return f"{address}:{'observer' if observes else 'participant'};{client}"


class Obstacle(Enum):
    """A reason against `reconfig`. `checker.rollout.output.by_reconfig` has the sentence and the remedy for each."""

    STANDALONE = "standalone"
    DISABLED = "disabled"  # at every server that runs now
    DISABLED_AT_SOME = "disabled at some"
    DISABLED_AFTER = "disabled after"  # by new files
    NOT_MAJORITIES = "not majorities"
    ADDRESSES = "addresses"
    TOO_FEW_VOTERS = "too few voters"
    NO_CLIENT_ADDRESS = "no client address"


@dataclass(frozen=True)
class Refusal:
    """An obstacle, and the servers that it is about, ascending; none if it is about all of them."""

    obstacle: Obstacle
    sids: tuple[Sid, ...] = ()


def refusals(old: Folder, new: Folder, stage: Stage) -> tuple[Refusal, ...]:
    """Every obstacle of a change of members; empty if ZooKeeper accepts its commands and they can be judged."""
    return tuple(_refusals(old, new, stage))


def _refusals(old: Folder, new: Folder, stage: Stage) -> Iterator[Refusal]:
    if stage.standalone:
        yield Refusal(Obstacle.STANDALONE)
        return
    disabled = _disabled(old)
    if disabled:
        is_everywhere = len(disabled) == len(old.servers)
        yield Refusal(Obstacle.DISABLED if is_everywhere else Obstacle.DISABLED_AT_SOME, disabled)
    if after := _disabled(new):
        yield Refusal(Obstacle.DISABLED_AFTER, after)
    if not isinstance(old.view.quorums, Majority) or not isinstance(new.view.quorums, Majority):
        yield Refusal(Obstacle.NOT_MAJORITIES)
    if stage.readdressed:
        yield Refusal(Obstacle.ADDRESSES, stage.readdressed)
    if len(new.view.voters) < 2:
        yield Refusal(Obstacle.TOO_FEW_VOTERS)
    lines = member_lines(old, new)
    if unknown := tuple(sorted((old.view.members | new.view.members) - lines.keys())):
        yield Refusal(Obstacle.NO_CLIENT_ADDRESS, unknown)


def _disabled(folder: Folder) -> tuple[Sid, ...]:
    return tuple(sid for sid, files in sorted(folder.servers.items()) if not files.config.reconfig_enabled)


def member_lines(old: Folder, new: Folder) -> dict[Sid, str]:
    """The value of the `server.N` line of each server, with its role and its client address.

    A line without a client address gets that of the server's own file. Without one there the server is left out.
    """
    lines = {sid: _line_of(old, new, sid) for sid in sorted(old.servers.keys() | new.servers.keys())}
    return {sid: line for sid, line in lines.items() if line is not None}


def _line_of(old: Folder, new: Folder, sid: Sid) -> str | None:
    """The line of a server as the others see it: its own file may have a wildcard as its host."""
    folder = new if sid in new.servers else old
    readers = sorted(folder.servers, key=lambda reader: reader == sid)
    line = next((line for reader in readers if (line := folder.servers[reader].config.server(sid)) is not None), None)
    client = line.client or folder.servers[sid].config.client if line is not None else None
    if line is None or client is None:
        return None
    address = str(client.port) if client.host == ANY_ADDRESS else str(client)
    return f"{render_server(replace(line, client=None, secure_client=None))};{address}"
