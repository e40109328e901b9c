"""The quorums of small views, by enumeration."""

from itertools import combinations

from spec.quorum import Sid, View


def minimal_quorums(view: View) -> tuple[frozenset[Sid], ...]:
    """The quorums that contain no smaller quorum, smallest first, then in ascending order of their servers."""
    found: list[frozenset[Sid]] = []
    for size in range(len(view.voters) + 1):
        for servers in map(frozenset, combinations(sorted(view.voters), size)):
            if not any(quorum <= servers for quorum in found) and view.contains_quorum(servers):
                found.append(servers)
    return tuple(found)
