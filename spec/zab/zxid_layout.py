"""The switch to zxids with a wide counter, as the pull request 2417 makes it (ZOOKEEPER-2789, not released).

Rules of this module:

- A leader that may switch does so when it has chosen its epoch, with the acceptance of that epoch. LEADERINFO then
  names the epoch of the switch, and each learner keeps it in a file before it accepts the epoch.
- The switch of a server may move, or end, until the server has a zxid of the wide layout. After that, a server leaves a
  leader that names another epoch, or none.
- A leader that has switched refuses every learner that does not know the layout.
- The file is written in the step that changes the layout in memory. In the pull request the memory comes first, and a
  failed write leaves a layout that no restart knows.

Source: `Leader.maybeSwitchZxidLayout`; `QuorumPeer.recordZxidLayoutSwitch`, `adoptZxidLayoutSwitch`,
`abandonUnusedZxidLayoutSwitch`, `checkZxidLayoutSwitchUnused`; `Learner.registerWithLeader`; `LearnerHandler.run`.
"""

from msgspec.structs import replace

from spec.durable import Durable
from spec.txn import WIDE_COUNTER_BITS, Layout
from spec.zab.packets import LeaderInfo, WideLeaderInfo
from spec.zab.state import Leader


def of_leader(layout: Layout | None, leader: Leader) -> Layout | None:
    """The layout of a leader that has just chosen its epoch."""
    if layout is None or layout.switch or not layout.may_switch:
        return layout
    counted = (handler for handler in leader.handlers if handler.sid in leader.counted)
    if layout.asks_first and not all(handler.knows_wide for handler in counted):
        return layout
    return replace(layout, switch=leader.epoch)


def adopted(durable: Durable, last_zxid: int, packet: LeaderInfo) -> Durable | None:
    """The disk of a learner after LEADERINFO; None if it leaves this leader."""
    layout = durable.layout
    switch = packet.switch if isinstance(packet, WideLeaderInfo) else 0
    if layout is None or switch == layout.switch:
        return durable
    if layout.switch and last_zxid >= layout.switch << WIDE_COUNTER_BITS:
        return None
    return replace(durable, layout=replace(layout, switch=switch))
