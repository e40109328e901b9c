"""Transactions and zxids.

Rules of this module:

- A zxid is one number, as on the wire: the epoch in the high 32 bits, a counter in the low 32. The counter 0 is the
  zxid of a NEWLEADER: it identifies an epoch, not a transaction.
- Two transactions are the same if zxid **and** value are the same. Two transactions with one zxid are a defect, which
  an invariant must be able to detect.

- The layout of a zxid is decided here: `Layout` is that of a server, and without one a zxid has 32 bits for each part.

Source: `ZxidUtils`, `TxnHeader`.
"""

from typing import Any

import msgspec

COUNTER_BITS = 32
WIDE_COUNTER_BITS = 40
LAST_COUNTER = (1 << COUNTER_BITS) - 2
"""The last counter of a transaction: a leader that would need the next one gives up (`Leader.propose`)."""
_LARGE = 1 << (COUNTER_BITS - 1)


class Layout(msgspec.Struct, frozen=True):
    """The layouts of zxids that a server knows, if it runs the pull request 2417 (ZOOKEEPER-2789, not released).

    From the epoch `switch` on, zxids have 24 bits of epoch and 40 of counter; 0 stands for no such epoch. A leader that
    `may_switch` begins the wide layout with its epoch. With `asks_first` it does so only if all learners that it counts
    know that layout, which is a correction of ours.

    Source: `ZxidLayout`, `ZxidLayoutState`, `Leader.maybeSwitchZxidLayout` of that pull request.
    """

    switch: int = 0
    may_switch: bool = False
    asks_first: bool = False

    @property
    def bits(self) -> int:
        """The bits of the counter in zxids that this server makes (`ZxidLayoutState.current`)."""
        return WIDE_COUNTER_BITS if self.switch else COUNTER_BITS

    def bits_of(self, zxid: int) -> int:
        """The bits of the counter in any zxid (`ZxidLayoutState.layoutFor`)."""
        return WIDE_COUNTER_BITS if self.switch and zxid >= self.switch << WIDE_COUNTER_BITS else COUNTER_BITS


class Txn(msgspec.Struct, frozen=True):
    """A transaction: its zxid and its content.

    `value` is hashable. The protocol reads it only if it is a `spec.quorum.Reconfiguration`.
    """

    zxid: int
    value: Any = None


def make_zxid(epoch: int, counter: int = 0, layout: Layout | None = None) -> int:
    """The zxid of an epoch and a counter (`ZxidUtils.makeZxid`)."""
    return epoch << (COUNTER_BITS if layout is None else layout.bits) | counter


def epoch_of(zxid: int, layout: Layout | None = None) -> int:
    """The epoch of a zxid (`ZxidUtils.getEpochFromZxid`)."""
    return zxid >> (COUNTER_BITS if layout is None else layout.bits_of(zxid))


def counter_of(zxid: int, layout: Layout | None = None) -> int:
    """The counter of a zxid within its epoch (`ZxidUtils.getCounterFromZxid`)."""
    return zxid & ((1 << (COUNTER_BITS if layout is None else layout.bits_of(zxid))) - 1)


def last_counter(layout: Layout | None = None) -> int:
    """The last counter of a transaction in zxids that a server makes."""
    return LAST_COUNTER if layout is None else (1 << layout.bits) - 2


def rolls_over(zxid: int) -> bool:
    """Whether this is the zxid that no released ensemble uses, and after which an epoch has none."""
    return counter_of(zxid) == LAST_COUNTER + 1


def is_last(zxid: int, layout: Layout | None = None) -> bool:
    """Whether no zxid of its epoch follows a zxid."""
    return counter_of(zxid, layout) == last_counter(layout)


def format_zxid(zxid: int) -> str:
    """A zxid in the notation of reports and scenarios: `epoch:counter`, with a counter near its end as `0xfffffffe`."""
    counter = counter_of(zxid)
    return f"{epoch_of(zxid)}:{counter if counter < _LARGE else hex(counter)}"


def zxid_text(zxid: int) -> str:
    """A zxid as servers print it: `0x100000002`."""
    return f"0x{zxid:x}"
