"""The two ways ZooKeeper counts a quorum: plain majority, and weights within groups.

Rules this module keeps:

- Only voters count. `QuorumMaj.containsQuorum` takes it on trust that nobody else has acked; here the set
  is cut down to the voters first, so that no caller can forget to.
- Comparisons are strict, and halves are rounded as Java's integer division rounds them: towards zero. For
  totals that are not negative, `w > W / 2` is then the same as `2 * w > W`.
- The fields are canonical (sorted tuples, frozen sets), so equality and hashing mean "the same quorums".

Sources: `QuorumMaj.containsQuorum`, `QuorumHierarchical.containsQuorum`,
`QuorumHierarchical.computeGroupWeight`, and `SyncedLearnerTracker.addAck`, which is where ZooKeeper drops
the acks of servers that do not vote.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import msgspec

Sid = int
"""A server's id: the number in its `myid` file and in its `server.N` line."""


class Majority(msgspec.Struct, frozen=True, tag=True):
    """More than half of the voting members (`QuorumMaj`).

    `members` holds the voting members only. An ensemble without voters has no quorum at all.
    """

    members: frozenset[Sid]

    @property
    def quorum_size(self) -> int:
        """How many voters the smallest quorums have."""
        return len(self.members) // 2 + 1

    def contains_quorum(self, servers: AbstractSet[Sid]) -> bool:
        """Whether the voters among `servers` are more than `floor(n / 2)` of the n voting members."""
        return len(self.members & servers) >= self.quorum_size

    def weight(self, sid: Sid) -> int:
        """1 for a voter, 0 for anybody else (`QuorumMaj.getWeight` says 1 whoever is asked about)."""
        return int(sid in self.members)


class Hierarchical(msgspec.Struct, frozen=True, tag=True):
    """More than half of the weight, in more than half of the groups (`QuorumHierarchical`).

    - `groups`: `(group id, its servers in ascending order)`, in ascending order of the group id; a server
      stands in at most one group.
    - `weights`: `(server, weight)` for exactly the servers that stand in a group, in ascending order.
    - `silent`: servers that weigh in their group's total and never vote, since they are observers or have
      no `server.N` line. ZooKeeper accepts such a file, and the group is then the harder to win.

    Build one with `hierarchical()`, which puts the fields in order. A value that is not canonical raises
    ValueError. Weights are any integers: ZooKeeper accepts negative ones, although two quorums of one view
    need not meet then.
    """

    groups: tuple[tuple[int, tuple[Sid, ...]], ...]
    weights: tuple[tuple[Sid, int], ...]
    silent: frozenset[Sid] = frozenset()

    def __post_init__(self) -> None:
        grouped = [sid for _, servers in self.groups for sid in servers]
        if len(set(grouped)) != len(grouped):
            raise ValueError(f"a server stands in two groups: {self.groups}")
        ordered = sorted((gid, tuple(sorted(servers))) for gid, servers in dict(self.groups).items())
        if list(self.groups) != ordered:
            raise ValueError(f"groups and their servers must be in ascending order: {self.groups}")
        if [sid for sid, _ in self.weights] != sorted(grouped):
            raise ValueError(f"weights must name each grouped server once, in order: {self.weights}")
        if not self.silent <= set(grouped):
            raise ValueError(f"silent servers in no group: {sorted(self.silent - set(grouped))}")

    @property
    def members(self) -> frozenset[Sid]:
        """The voting members: every grouped server that is not silent."""
        return frozenset(sid for sid, _ in self.weights) - self.silent

    def weight(self, sid: Sid) -> int:
        """The weight a server votes with; 0 for a server that does not vote."""
        return 0 if sid in self.silent else dict(self.weights).get(sid, 0)

    def totals(self) -> tuple[tuple[tuple[Sid, ...], int], ...]:
        """For each group: its servers, and their weights together, silent ones included."""
        weights = dict(self.weights)
        return tuple((servers, sum(weights[sid] for sid in servers)) for _, servers in self.groups)

    def groups_to_exceed(self) -> int:
        """A quorum wins more groups than this: half of the groups whose total is not zero, rounded down."""
        return sum(total != 0 for _, total in self.totals()) // 2

    def contains_quorum(self, servers: AbstractSet[Sid]) -> bool:
        """Whether the voters among `servers` win more than half of the groups whose total is not zero.

        A group is won by more than half of its total weight, and only by a set that has a voter in it: that
        makes a difference when a total is negative, and half of it is then exceeded by nothing at all.
        """
        voting = self.members & servers
        weights = dict(self.weights)
        won = 0
        for group, total in self.totals():
            present = voting.intersection(group)
            won += bool(present) and sum(weights[sid] for sid in present) > java_half(total)
        return won > self.groups_to_exceed()


QuorumSystem: TypeAlias = Majority | Hierarchical


def java_half(total: int) -> int:
    """Half of a number as Java's `total / 2` gives it: rounded towards zero, below zero too."""
    return total // 2 if total >= 0 else -(-total // 2)


def hierarchical(
    groups: Mapping[int, Iterable[Sid]],
    weights: Mapping[Sid, int] | None = None,
    silent: Iterable[Sid] = (),
) -> Hierarchical:
    """A canonical `Hierarchical`; a grouped server without a weight weighs 1 (`QuorumHierarchical.parse`).

    Weights of servers that stand in no group have no effect and are dropped. Raises ValueError when a
    server stands in two groups, or when a silent server stands in none.
    """
    given = weights or {}
    ordered = tuple((gid, tuple(sorted(groups[gid]))) for gid in sorted(groups))
    grouped = sorted(sid for _, servers in ordered for sid in servers)
    return Hierarchical(ordered, tuple((sid, given.get(sid, 1)) for sid in grouped), frozenset(silent))
