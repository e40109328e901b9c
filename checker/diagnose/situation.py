"""The situation of an ensemble: the questions that several parts of a diagnosis ask, each answered once.

Rules of this module:

- A question that the evidence does not answer has no answer: None, or nothing in the mapping. No caller takes that for
  good news.
- The common view is that of more than half of the servers whose view is known, and of two at least. The files of a
  single server are its own opinion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from checker.diagnose.evidence import ServerEvidence
from checker.rollout.files.keys import strangers
from checker.rollout.inputs.folders import ServerFiles
from checker.rollout.inputs.live import NoAnswerError, Silence
from checker.symbolic.disjoint import DisjointQuorums, disjoint_quorums
from refimpl.disk.survey import DiskSurvey
from spec.config import ServerAddress
from spec.quorum import Sid, View

SERVING = ("leader", "follower", "observer")
"""The roles of a server that serves."""
Members = tuple[frozenset[Sid], frozenset[Sid]]
"""The voters and the observers of a view."""


def members_of(view: View) -> Members:
    """The voters and the observers; two views with the same may differ in version and addresses."""
    return view.voters, view.observers


def listed(sids: Iterable[Sid]) -> str:
    """The ids in order, for a sentence."""
    return ", ".join(map(str, sorted(sids)))


def servers_text(sids: Iterable[Sid]) -> str:
    """The servers, for a sentence."""
    sids = tuple(sids)
    return f"server{'s' * (len(sids) != 1)} {listed(sids)}"


@dataclass(frozen=True)
class Situation:
    """The evidence of all servers, and what follows from it."""

    servers: tuple[ServerEvidence, ...]

    def newest_first(self, sids: Iterable[Sid]) -> tuple[Sid, ...]:
        """Servers in the order of a start: the one that wins an election first; those without a disk here last."""
        disks = {sid: server.disk for sid, server in self.by_sid.items() if server.disk is not None}
        votes = {sid: (disk.current.value or 0, disk.last_zxid) for sid, disk in disks.items()}
        return tuple(sorted(sorted(sids), key=lambda sid: votes.get(sid, (-1, 0)), reverse=True))

    # Files.

    @cached_property
    def by_sid(self) -> Mapping[Sid, ServerEvidence]:
        """The servers by their ids; of two places with one id the one whose server answers, or else the first."""
        ranked = sorted(self.servers, key=lambda server: server.answers is None)
        return {server.sid: server for server in reversed(ranked) if server.sid is not None}

    @cached_property
    def with_data(self) -> Mapping[Sid, DiskSurvey]:
        """The disks that have data."""
        return {sid: server.data for sid, server in sorted(self.by_sid.items()) if server.data is not None}

    @property
    def has_twins(self) -> bool:
        """Whether two data directories have one id, or one has none: nothing says which server's disk it is."""
        sids = [server.sid for server in self.servers if server.data is not None]
        return None in sids or len(set(sids)) < len(sids)

    @cached_property
    def files(self) -> Mapping[Sid, ServerFiles]:
        """The files of the servers whose files are known."""
        return {sid: server.files for sid, server in sorted(self.by_sid.items()) if server.files is not None}

    @cached_property
    def views(self) -> Mapping[Sid, View]:
        """The view of each server whose view is known."""
        return {sid: server.view for sid, server in sorted(self.by_sid.items()) if server.view is not None}

    @cached_property
    def common_view(self) -> View | None:
        """The view of more than half of the known servers, at least two, if there is one."""
        counts = Counter(members_of(view) for view in self.views.values())
        if not counts:
            return None
        members, count = counts.most_common(1)[0]
        # One shared file is known as the file of all its members, so that it counts for each of them.
        if count < 2 or 2 * count <= len(self.views):
            return None
        return next(view for view in self.views.values() if members_of(view) == members)

    @cached_property
    def empty(self) -> frozenset[Sid]:
        """The servers that do not serve, and whose disk is empty: an election with them can drop what others have."""
        empty = {sid for sid, server in self.by_sid.items() if server.disk is not None and server.disk.is_empty}
        return frozenset(empty.difference(self.serving, () if self.common_view is None else self.common_view.observers))

    @cached_property
    def deviants(self) -> tuple[Sid, ...]:
        """The servers whose view is not the common one."""
        common = self.common_view
        if common is None:
            return ()
        return tuple(sid for sid, view in self.views.items() if members_of(view) != members_of(common))

    @cached_property
    def strangers(self) -> tuple[tuple[Sid, Sid], ...]:
        """The pairs of servers that do not talk to each other by their TLS and SASL keys."""
        return strangers(self.files, self.files)

    def addresses(self, sid: Sid) -> Mapping[Sid, tuple[ServerAddress, ...]]:
        """The peer addresses of one server in the file of each other one that names it."""
        lines = {owner: files.config.server(sid) for owner, files in self.files.items()}
        return {owner: line.addresses for owner, line in lines.items() if line is not None}

    # Logs.

    @cached_property
    def logged_leaders(self) -> tuple[Sid, ...]:
        """The servers that led at one time by their logs, two at least; the clocks of their machines must agree."""
        logs = {sid: server.log for sid, server in sorted(self.by_sid.items()) if server.log is not None}
        spans = {
            sid: (log.since, log.until)
            for sid, log in logs.items()
            if log.role == "LEADING" and log.since is not None and log.until is not None
        }
        return tuple(
            sid
            for sid, (since, until) in spans.items()
            if any(since < end and begin < until for other, (begin, end) in spans.items() if other != sid)
        )

    def in_logged_role(self, *roles: str) -> tuple[Sid, ...]:
        """The servers whose log ends in one of these roles."""
        return tuple(
            sid for sid, server in sorted(self.by_sid.items()) if server.log is not None and server.log.role in roles
        )

    @cached_property
    def without_quorum(self) -> frozenset[Sid]:
        """The voters that no looking server reached, by the logs, if the others are no quorum."""
        view = self.common_view
        lost = [
            server.log.refused & view.voters
            for server in self.servers
            if view is not None and server.log is not None and server.log.role == "LOOKING"
        ]
        if view is None or not lost:
            return frozenset()
        common = frozenset.intersection(*map(frozenset, lost))
        return frozenset() if view.contains_quorum(view.voters - common) else common

    @property
    def leaders_at_once(self) -> tuple[Sid, ...]:
        """The servers that lead at one time, two at least, by their answers or else by their logs."""
        return self.leaders if len(self.leaders) > 1 else self.logged_leaders

    @property
    def versions_differ(self) -> bool:
        """Whether servers run with two versions of a configuration that was changed by `reconfig`."""
        versions = {files.config.version for files in self.files.values() if files.config.dynamic_config_file}
        return len(versions) > 1

    # Live servers.

    @cached_property
    def leaders(self) -> tuple[Sid, ...]:
        """The servers that say that they lead."""
        return self._in_mode("leader")

    @cached_property
    def serving(self) -> tuple[Sid, ...]:
        """The servers that say that they lead, follow or observe."""
        return self._in_mode(*SERVING)

    @cached_property
    def looking(self) -> tuple[ServerEvidence, ...]:
        """The servers that run and do not serve."""
        return tuple(self._silent(Silence.NOT_SERVING))

    @cached_property
    def silent(self) -> tuple[ServerEvidence, ...]:
        """The servers that give no answer at all."""
        kinds = (Silence.TIMEOUT, Silence.REFUSED, Silence.UNREACHABLE, Silence.UNKNOWN_HOST, Silence.ENDED)
        return tuple(self._silent(*kinds))

    @cached_property
    def unclear(self) -> tuple[ServerEvidence, ...]:
        """The addresses whose answer does not say which server it is."""
        return tuple(self._silent(Silence.NOT_LISTED, Silence.STRANGER, Silence.STANDALONE))

    @cached_property
    def followed(self) -> Mapping[Sid, Sid]:
        """The leader that each following server names."""
        answers = {sid: server.answers for sid, server in sorted(self.by_sid.items())}
        return {
            sid: answer.follows for sid, answer in answers.items() if answer is not None and answer.follows is not None
        }

    @property
    def was_asked(self) -> bool:
        """Whether an address was given."""
        return any(server.live is not None for server in self.servers)

    def _may_follow(self, leader: Sid) -> frozenset[Sid]:
        """The leader, and the serving servers that can follow it: they name no other, and it votes in their views."""
        running = {sid: self.by_sid[sid].running for sid in self.serving if self.followed.get(sid, leader) == leader}
        return frozenset(sid for sid, files in running.items() if files is None or files.view.is_voter(leader)) | {
            leader
        }

    def _in_mode(self, *modes: str) -> tuple[Sid, ...]:
        return tuple(sid for sid, server in sorted(self.by_sid.items()) if server.mode in modes)

    def _silent(self, *kinds: Silence) -> Iterator[ServerEvidence]:
        for server in self.servers:
            if isinstance(server.live, NoAnswerError) and server.live.silence in kinds:
                yield server

    @cached_property
    def has_quorum(self) -> bool | None:
        """Whether a leader serves with a quorum of its own view; None if the answers do not decide it."""
        if not self.was_asked:
            return None
        for leader in self.leaders:
            view, answer = self.views.get(leader, self.common_view), self.by_sid[leader].answers
            serving = self._may_follow(leader)
            if view is not None and view.contains_quorum(serving):
                return True
            # The groups and weights of a voting view are not stated, and all its voters are a quorum by any of them.
            if answer is not None and answer.voting_view and answer.voting_view <= serving:
                return True
        common = self.common_view
        if common is None:
            return None
        addressed = {server.sid for server in self.servers if server.live is not None}
        return False if common.voters <= addressed else None

    @property
    def has_one_quorum(self) -> bool | None:
        """Whether a quorum serves, and no second leader; None if that is not known, as it is with two leaders."""
        return self.has_quorum if len(self.leaders) < 2 else None

    @cached_property
    def disjoint(self) -> DisjointQuorums | None:
        """Quorums of two servers' views that have no server in common; None if every two known views meet."""
        views = {members_of(view): view for view in self.views.values()}
        pairs = (disjoint_quorums(one, other) for one, other in combinations(views.values(), 2))
        return next((pair for pair in pairs if pair is not None), None)
