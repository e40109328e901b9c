"""The two quorum systems of ZooKeeper: plain majority, and weights within groups.

Rules of this module:

- Only voters count. `QuorumMaj.containsQuorum` trusts that only voters have acknowledged; here the set is first
  restricted to the voters, so that no caller can forget to.
- Comparisons are strict, and halves are rounded like Java's integer division: towards zero. For totals that are not
  negative, `w > W / 2` is then the same as `2 * w > W`.
- No sum of weights leaves the 64 bits of Java's `long`. There ZooKeeper's sum wraps around, and a set with more servers
  than a quorum need not be one. Such weights are refused (`sums_fit`).
- The fields are canonical (sorted tuples, frozen sets), so equality and hashing mean "the same quorums".

Sources: `QuorumMaj.containsQuorum`, `QuorumHierarchical.containsQuorum`, `QuorumHierarchical.computeGroupWeight`, and
`SyncedLearnerTracker.addAck`, where ZooKeeper drops the acks of servers that do not vote.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Annotated, TypeAlias

import msgspec

Sid: TypeAlias = Annotated[int, "the id of a server"]
"""A server's id: the number in its `myid` file and in its `server.N` line. The note tells it from other numbers."""


class Majority(msgspec.Struct, frozen=True, tag=True):
    """More than half of the voting members (`QuorumMaj`).

    `members` contains only the voting members. An ensemble without voters has no quorum at all.
    """

    members: frozenset[Sid]

    @property
    def quorum_size(self) -> int:
        """The number of voters in the smallest quorums."""
        return len(self.members) // 2 + 1

    def contains_quorum(self, servers: AbstractSet[Sid]) -> bool:
        """Whether the voters among `servers` are more than `floor(n / 2)` of the n voting members."""
        return len(self.members & servers) >= self.quorum_size

    def weight(self, sid: Sid) -> int:
        """1 for a voter, 0 for any other server (`QuorumMaj.getWeight` returns 1 for every server)."""
        return int(sid in self.members)


class Hierarchical(msgspec.Struct, frozen=True, tag=True):
    """More than half of the weight, in more than half of the groups (`QuorumHierarchical`).

    - `groups`: `(group id, its servers in ascending order)`, in ascending order of the group id; a server is in at most
      one group.
    - `weights`: `(server, weight)` for exactly the servers in a group, in ascending order.
    - `silent`: servers that count in their group's total and never vote, since they are observers or have no `server.N`
      line. ZooKeeper accepts such a file, and the group is then harder to win.

    Build one with `hierarchical()`, which sorts the fields. A value that is not canonical raises ValueError, and so do
    weights whose sum exceeds 64 bits. ZooKeeper accepts negative weights, although two quorums of one view need not
    intersect then.
    """

    groups: tuple[tuple[int, tuple[Sid, ...]], ...]
    weights: tuple[tuple[Sid, int], ...]
    silent: frozenset[Sid] = frozenset()

    def __post_init__(self) -> None:
        grouped = [sid for _, servers in self.groups for sid in servers]
        if len(set(grouped)) != len(grouped):
            raise ValueError(f"a server is in two groups: {self.groups}")
        ordered = sorted((gid, tuple(sorted(servers))) for gid, servers in dict(self.groups).items())
        if list(self.groups) != ordered:
            raise ValueError(f"groups and their servers must be in ascending order: {self.groups}")
        if [sid for sid, _ in self.weights] != sorted(grouped):
            raise ValueError(f"weights must name each grouped server once, in order: {self.weights}")
        weights = dict(self.weights)
        if any(not sums_fit(weights[sid] for sid in servers) for _, servers in self.groups):
            raise ValueError(f"the weights of a group must add up to less than 2**63: {self.weights}")
        if not self.silent <= set(grouped):
            raise ValueError(f"silent servers in no group: {sorted(self.silent - set(grouped))}")

    @property
    def members(self) -> frozenset[Sid]:
        """The voting members: every grouped server that is not silent."""
        return frozenset(sid for sid, _ in self.weights) - self.silent

    def weight(self, sid: Sid) -> int:
        """The weight of a server's vote; 0 for a server that does not vote."""
        return 0 if sid in self.silent else dict(self.weights).get(sid, 0)

    def totals(self) -> tuple[tuple[tuple[Sid, ...], int], ...]:
        """The servers and the total weight of each group, including silent servers."""
        weights = dict(self.weights)
        return tuple((servers, sum(weights[sid] for sid in servers)) for _, servers in self.groups)

    def groups_to_exceed(self) -> int:
        """The number of groups that a quorum must exceed: half of the groups whose total is not zero, rounded down."""
        return sum(total != 0 for _, total in self.totals()) // 2

    def contains_quorum(self, servers: AbstractSet[Sid]) -> bool:
        """Whether the voters among `servers` win more than half of the groups whose total is not zero.

        A set wins a group with more than half of its total weight, and only if it contains a voter of the group. The
        second condition matters for a negative total, because the weight 0 of an empty set exceeds half of it.
        """
        voting = self.members & servers
        weights = dict(self.weights)
        won = 0
        for group, total in self.totals():
            present = voting.intersection(group)
            won += bool(present) and sum(weights[sid] for sid in present) > java_half(total)
        return won > self.groups_to_exceed()


QuorumSystem: TypeAlias = Majority | Hierarchical


def sums_fit(weights: Iterable[int]) -> bool:
    """Whether every sum of some of these weights fits in Java's `long` (`QuorumHierarchical.computeGroupWeight`)."""
    return sum(map(abs, weights)) < 1 << 63


def java_half(total: int) -> int:
    """Half of a number like Java's `total / 2`: rounded towards zero, also for negative numbers."""
    return total // 2 if total >= 0 else -(-total // 2)


def hierarchical(
    groups: Mapping[int, Iterable[Sid]],
    weights: Mapping[Sid, int] | None = None,
    silent: Iterable[Sid] = (),
) -> Hierarchical:
    """A canonical `Hierarchical`; a grouped server without a weight has weight 1 (`QuorumHierarchical.parse`).

    Weights of servers without a group have no effect and are dropped. Raises ValueError if a server is in two groups,
    or if a silent server is in none.
    """
    weight_of = weights or {}
    ordered = tuple((gid, tuple(sorted(groups[gid]))) for gid in sorted(groups))
    grouped = sorted(sid for _, servers in ordered for sid in servers)
    return Hierarchical(ordered, tuple((sid, weight_of.get(sid, 1)) for sid in grouped), frozenset(silent))
