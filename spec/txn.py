"""Transactions and zxids.

Rules of this module:

- A zxid is one number, as on the wire: the epoch in the high 32 bits, a counter in the low 32. The counter 0 is the
  zxid of a NEWLEADER: it identifies an epoch, not a transaction.
- Two transactions are the same if zxid **and** value are the same. Two transactions with one zxid are a defect, which
  an invariant must be able to detect.

Source: `ZxidUtils`, `TxnHeader`.
"""

from typing import Any

import msgspec

COUNTER_BITS = 32
LAST_COUNTER = (1 << COUNTER_BITS) - 2
"""The last counter of a transaction: a leader that would need the next one gives up (`Leader.propose`)."""
_LARGE = 1 << (COUNTER_BITS - 1)


class Txn(msgspec.Struct, frozen=True):
    """A transaction: its zxid and its content.

    `value` is hashable. The protocol reads it only if it is a `spec.quorum.Reconfiguration`.
    """

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


def is_last(zxid: int) -> bool:
    """Whether no zxid of its epoch follows a zxid."""
    return counter_of(zxid) == LAST_COUNTER


def format_zxid(zxid: int) -> str:
    """A zxid in the notation of reports and scenarios: `epoch:counter`, with a counter near its end as `0xfffffffe`."""
    counter = counter_of(zxid)
    return f"{epoch_of(zxid)}:{counter if counter < _LARGE else hex(counter)}"


def zxid_text(zxid: int) -> str:
    """A zxid as servers print it: `0x100000002`."""
    return f"0x{zxid:x}"
