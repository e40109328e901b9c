"""The remedies for damaged data directories, for the node, the survey and the checker.

Rules this module keeps:

- A directory may be emptied only if it is shown that other servers have everything in it. The node never knows this.
- A server that runs alone has the only copy, so nothing can synchronise it.
- No advice deletes: data in another place can be read again.
"""

import enum

RECOVER = "quorate recover"


class Damage(enum.Enum):
    """The kinds of damage of a data directory."""

    RECORDS = "transactions that were written to the log are lost, or cannot be read"
    SNAPSHOT = "no snapshot can be read, or the log does not continue it"
    NO_SNAPSHOT = "there are transactions without any snapshot"
    PROMISE = "the server has forgotten a promise to other servers"


class Others(enum.Enum):
    """The state of knowledge about the other servers."""

    UNKNOWN = "nothing"
    NONE = "the server runs alone"
    COMPLETE = "they have a quorum, and everything that this server has"


_TRUSTED = (
    "if this is the data of ZooKeeper 3.4, which had written no snapshot yet, copy it and start once with "
    "snapshot.trust.empty=true in the zoo.cfg; otherwise "
)
_COPY_FIRST = "keep the directory and copy it before any change; "


def remedy(damage: Damage, others: Others = Others.UNKNOWN) -> str:
    """Return the remedy for a directory with this damage, in one line without a full stop."""
    trusted = _TRUSTED if damage is Damage.NO_SNAPSHOT else ""
    if others is Others.COMPLETE:
        return "move its data to another place, keep myid, and let it synchronise: the other servers have all of it"
    if others is Others.NONE:
        if damage is Damage.PROMISE:
            return f"{_COPY_FIRST}write a number into the file, no smaller than the epoch of the last transaction"
        return (
            f"{trusted}{_COPY_FIRST}no other server has these data, so restore them from a copy, or let `{RECOVER}` "
            "write into a new directory what can be read"
        )
    return (
        f"{trusted}{_COPY_FIRST}only if other servers serve without this one, move its data to another place, keep "
        f"myid, and let it synchronise with them; if not, restore it from a copy, or let `{RECOVER}` show what the "
        "remaining directories have together"
    )
