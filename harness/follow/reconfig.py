"""One run of a plan by `reconfig`: joiners start, a client asks for each command, servers that leave stop.

Rules of this module:

- Servers begin with dynamic files without a version, as a new ensemble does. From their first election on they write
  these files themselves, so a file is given to a server once. A joiner has the file of the answer: the present members
  and itself.
- A command waits as the answer does: for its reply, and then until every member names the new members in one version.
  A reply that is lost, because its server changes the leader, is no failure if the members change.
- ACLs are skipped. No server is killed: the answer says that none may restart between a command and its reply.
- A voter that leaves is made to lead first, if its id allows that, so that the leadership is handed over.

Source: `checker.rollout.output.by_reconfig`; docs/reference-reconfig-facts.md.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from checker.rollout.answer import Plan
from checker.rollout.inputs.folders import Folder
from checker.rollout.reconfig.answers import RouteAnswer
from checker.rollout.reconfig.commands import MembershipCommand
from harness.follow.follower import SERVE_SECONDS, EnsembleFollower, FollowOptions, StallError
from harness.follow.servers import FollowedServers, Loopback
from harness.processes import ServerError, free_ports, wait_until
from harness.servers import ANY_VERSION, GET_DATA, RECONFIG, SKIP_ACL
from harness.session import DisconnectedError
from harness.zoo_cfg import observers_of, version_of, voters_of
from spec.quorum import Sid, View
from spec.tree.paths import CONFIG

SERVING = frozenset({"leader", "follower", "observer"})


class ReconfigFollower(EnsembleFollower):
    """Follows the commands of one route once, below `directory`."""

    def __init__(
        self, plan: Plan, route: RouteAnswer, options: FollowOptions, directory: Path, say: Callable[[str], None]
    ) -> None:
        self._old, self._new = plan.request.old, plan.request.new
        self._commands = tuple(command.command for command in route.commands)
        self._loopback = Loopback(free_ports)
        sids = tuple(sorted(self._old.servers.keys() | self._new.servers.keys()))
        servers = FollowedServers(sids, directory, options.release, self._loopback, (SKIP_ACL,))
        super().__init__(servers, options, len(self._commands), say)

    @property
    def _last(self) -> dict[Sid, frozenset[str]]:
        view = self._commands[-1].after
        return {sid: _modes(view, sid) for sid in view.members}

    def _begin(self) -> Sid:
        view = self._commands[0].before
        lines = self._lines(view)
        first = first_to_start(view, frozenset[Sid]().union(*(command.change.leaving for command in self._commands)))
        for group in (first, sorted(view.members - set(first))):
            for sid in group:
                self._start(sid, self._old, lines)
            self._wait_serving({sid: _modes(view, sid) for sid in group})
        return min(view.voters)

    def _start(self, sid: Sid, folder: Folder, lines: dict[Sid, str]) -> None:
        with self._servers.locks[sid]:
            self._servers.give_dynamic(sid, folder.servers[sid], lines)
            self._servers.start(sid)

    def _lines(self, view: View, joiner: Sid | None = None, *, observes: bool = False) -> dict[Sid, str]:
        """The lines of a dynamic file on this machine: the members of a view, and a joiner."""
        roles = {sid: sid in view.observers for sid in view.members} | ({} if joiner is None else {joiner: observes})
        return {sid: self._loopback.line_with_client(self._folder_of(sid), sid, roles[sid]) for sid in sorted(roles)}

    def _folder_of(self, sid: Sid) -> Folder:
        return self._new if sid in self._new.servers else self._old

    def _take_steps(self) -> None:
        for command in self._commands:
            self._wait_until_all_name(command.before)
            for sid in command.joiners:
                began = time.monotonic()
                lines = self._lines(command.before, sid, observes=sid in command.after.observers)
                self._start(sid, self._new, lines)
                self._wait_serving({sid: SERVING})
                self._done(f"start {sid}", began, led=False)
            self._ask(command)
            for sid in command.leaving:
                began = time.monotonic()
                with self._servers.locks[sid]:
                    self._servers.stop(sid)
                self._done(f"stop {sid}", began, led=False)

    def _ask(self, command: MembershipCommand) -> None:
        """Ask for a command at a server that stays, and wait for the reply and the new members. Raises StallError."""
        began = time.monotonic()
        leaders = self._servers.leaders()
        led = any(sid not in command.after.voters for sid in leaders)
        stays = min(command.before.voters & command.after.voters)
        self._send(replace(command, lines=self._lines(command.after)), stays)
        self._wait_until_all_name(command.after)
        handed = f" ({', '.join(map(str, leaders))} led before)" if led else ""
        self._done(f"reconfig{handed}: {_brief(command)}", began, led)

    def _send(self, command: MembershipCommand, sid: Sid) -> None:
        """Send a command, with the addresses on this machine, to a server. Raises StallError if it is refused."""
        session = self._servers.connect(sid)
        try:
            answer = session.ask(
                RECONFIG, command.joining_text or None, command.leaving_text or None, None, ANY_VERSION
            )
            if answer.err:
                raise StallError(f"`{command.zkcli}` was refused with error {answer.err}")
        except DisconnectedError:
            self._say("the connection ended before the reply")
        finally:
            session.drop()

    def _wait_until_all_name(self, view: View) -> None:
        """Wait until every member of a view names its members, in one version. Raises StallError."""
        try:
            wait_until(partial(self._all_name, view), SERVE_SECONDS, "all members name the same configuration")
        except ServerError as error:
            raise StallError(str(error)) from None

    def _all_name(self, view: View) -> bool:
        texts = [self._config(sid) for sid in sorted(view.members)]
        members = tuple(sorted(view.voters)), tuple(sorted(view.observers))
        agrees = all((voters_of(text), observers_of(text)) == members for text in texts)
        return agrees and len({version_of(text) for text in texts}) == 1

    def _config(self, sid: Sid) -> str:
        try:
            session = self._servers.connect(sid)
        except (ServerError, OSError):
            return ""
        try:
            answer = session.ask(GET_DATA, CONFIG, False)
            return "" if answer.err else str(answer.values[0].decode("utf-8"))
        except (ServerError, OSError):
            return ""
        finally:
            session.drop()


def first_to_start(view: View, leaving: frozenset[Sid]) -> list[Sid]:
    """The servers to start first, a quorum. Its highest id, which leads, is one that leaves if that is possible."""
    voters = sorted(view.voters)
    first = voters[: len(voters) // 2]
    chosen = [sid for sid in leaving & view.voters if sid > max(first, default=0)]
    return [*first, max(chosen, default=max(voters))]


def _modes(view: View, sid: Sid) -> frozenset[str]:
    return frozenset({"observer"}) if sid in view.observers else frozenset({"leader", "follower"})


def _brief(command: MembershipCommand) -> str:
    """The ids of a command, without addresses: `-add 4 -remove 3`."""
    joiners = ",".join(map(str, command.named))
    parts = [f"-add {joiners}"] if joiners else []
    return " ".join([*parts, *([f"-remove {command.leaving_text}"] if command.leaving else [])])
