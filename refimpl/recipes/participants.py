"""Who is in a queue, and who leads, read from the znodes.

Rules of this module:

- What is read is what the client's server has applied; it may be behind. `client.sync(path)` before has it catch up.
- Kazoo's exceptions are raised as they are: these are reads that the application asks for.

Source: Curator's `LockInternals.getParticipantNodes`, `LeaderSelector.getParticipants`, `Participant`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from kazoo.exceptions import NoNodeError

from spec.recipes import names
from spec.recipes.place import Rules
from spec.tree.paths import below, name_of


class Participant(msgspec.Struct, frozen=True):
    """Someone in the queue: the `id` that it was given, the path and czxid of its znode, and whether it leads."""

    id: str
    path: str
    token: int
    is_leader: bool


def participant(client: Any, path: str, *, leads: bool) -> Participant | None:
    """Whose znode this is; None if it is not there."""
    try:
        data, stat = client.get(path)
    except NoNodeError:
        return None
    return Participant(data.decode(errors="replace"), path, stat.czxid, leads)


def of_queue(client: Any, rules: Rules) -> Iterator[Participant]:
    """Who is in the queue, first come first; the first of them leads."""
    try:
        children = client.get_children(rules.root)
    except NoNodeError:
        return
    leads = True
    for path in names.paths(rules.root, children, rules.word):
        found = participant(client, path, leads=leads)
        if found is not None:
            leads = False
            yield found


def announced(client: Any, root: str, announcement: str) -> Participant | None:
    """Whom the announcement names. It holds a path as its creator's chroot has it, of which the name counts."""
    try:
        data, _ = client.get(announcement)
    except NoNodeError:
        return None
    return participant(client, below(root, name_of(data.decode(errors="replace"))), leads=True)
