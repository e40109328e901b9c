"""Transactions and zxids.

Rules this module keeps:

- A zxid is one number, as on the wire: the epoch in the high 32 bits, a counter in the low 32. The counter 0 is
  the zxid of a NEWLEADER: it names an epoch, and no transaction.
- Two transactions are the same if zxid **and** value are. That one zxid may name two of them is a defect which
  an invariant must be able to see.

Source: `ZxidUtils`, `TxnHeader`.
"""

from typing import Any

import msgspec

COUNTER_BITS = 32


class Txn(msgspec.Struct, frozen=True):
    """A transaction: its zxid, and what it does; `value` is hashable, and the protocol never looks into it."""

    zxid: int
    value: Any = None


def make_zxid(epoch: int, counter: int = 0) -> int:
    """The zxid of an epoch and a counter (`ZxidUtils.makeZxid`)."""
    return epoch << COUNTER_BITS | counter


def epoch_of(zxid: int) -> int:
    """The epoch of a zxid (`ZxidUtils.getEpochFromZxid`)."""
    return zxid >> COUNTER_BITS


def counter_of(zxid: int) -> int:
    """The counter of a zxid within its epoch (`ZxidUtils.getCounterFromZxid`)."""
    return zxid & ((1 << COUNTER_BITS) - 1)


def told(zxid: int) -> str:
    """A zxid as a reader is told it: `epoch:counter`, as scenarios write it."""
    return f"{epoch_of(zxid)}:{counter_of(zxid)}"
