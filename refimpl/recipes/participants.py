"""The members of a queue, and its leader, read from the znodes.

Rules of this module:

- A read returns the state of the client's server, which may lag behind. `client.sync(path)` before it avoids that.
- Kazoo's exceptions propagate unchanged: the application asks for these reads.

Source: Curator's `LockInternals.getParticipantNodes`, `LeaderSelector.getParticipants`, `Participant`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from kazoo.exceptions import NoNodeError

from spec.recipes import names
from spec.recipes.member import QueueRules
from spec.tree.paths import below, name_of


class Participant(msgspec.Struct, frozen=True):
    """A member of a queue: its `id`, the path and czxid of its znode, and whether it leads."""

    id: str
    path: str
    token: int
    is_leader: bool


def participant(client: Any, path: str, *, leads: bool) -> Participant | None:
    """Return the owner of this znode; None if the znode does not exist."""
    try:
        data, stat = client.get(path)
    except NoNodeError:
        return None
    return Participant(data.decode(errors="replace"), path, stat.czxid, leads)


def of_queue(client: Any, rules: QueueRules) -> Iterator[Participant]:
    """Yield the members of the queue in order; the first of them leads."""
    try:
        children = client.get_children(rules.root)
    except NoNodeError:
        return
    leads = True
    for path in names.paths(rules.root, children, rules.word):
        member = participant(client, path, leads=leads)
        if member is not None:
            leads = False
            yield member


def announced(client: Any, root: str, announcement: str) -> Participant | None:
    """Return the announced leader. The announcement is a path below its creator's chroot; only the last name counts."""
    try:
        data, _ = client.get(announcement)
    except NoNodeError:
        return None
    return participant(client, below(root, name_of(data.decode(errors="replace"))), leads=True)
