"""The layout of zxids with a wide counter, and the switch to it.

Expected values: `ZxidLayoutTest`, `ZxidLayoutStateTest`, `QuorumPeerZxidLayoutTest`, `LearnerHandlerTest` and
`Zab1_0Test` of the pull request 2417 (commit 371b9f0083), and arithmetic.
"""

import pytest

from spec.durable import Durable
from spec.effects import Disconnect, Send
from spec.election import Peer
from spec.quorum import majority_view
from spec.txn import Layout, Txn, counter_of, epoch_of, is_last, make_zxid
from spec.zab import leader, zxid_layout
from spec.zab.events import Receive
from spec.zab.packets import FollowerInfo, LeaderInfo, WideFollowerInfo, WideLeaderInfo
from spec.zab.state import ZabResult, ZabRules

AT_SIX, THREE, RULES = Layout(switch=6), majority_view({1, 2, 3}), ZabRules(asynchronous_disk=False)


def test_zxids_on_both_sides_of_the_switch_are_read_with_their_own_layouts() -> None:
    """testLayoutForAroundSwitchPoint: the last zxid of the epoch 5 in 32 bits, and the first of the epoch 6 in 40."""
    assert (epoch_of(0x5_FFFFFFFF, AT_SIX), counter_of(0x5_FFFFFFFF, AT_SIX)) == (5, 0xFFFFFFFF)
    assert (epoch_of(0x6_00_00000001, AT_SIX), counter_of(0x6_00_00000001, AT_SIX)) == (6, 1)
    assert (epoch_of(0x6_00_00000001), counter_of(0x6_00_00000001)) == (0x600, 1)  # a server that does not know
    assert make_zxid(6, 1, AT_SIX) == 0x600_00000001 > make_zxid(5, 0xFFFFFFFE)


def test_a_counter_of_40_bits_ends_before_its_last_number() -> None:
    """Leader.propose of the pull request compares with `getMaxCounter`."""
    assert is_last(make_zxid(7, (1 << 40) - 2, AT_SIX), AT_SIX)
    assert not is_last(make_zxid(7, 0xFFFFFFFE, AT_SIX), AT_SIX)
    assert is_last(make_zxid(5, 0xFFFFFFFE))


OLD, WIDE = Txn(make_zxid(5, 1), "old"), Txn(make_zxid(6, 100, AT_SIX), "wide")


@pytest.mark.parametrize(
    ("layout", "txn", "packet", "switch"),
    [
        (Layout(), OLD, WideLeaderInfo(6, 6), 6),
        (AT_SIX, OLD, WideLeaderInfo(7, 7), 7),  # moved: the first leader failed before its first transaction
        (AT_SIX, OLD, LeaderInfo(7), 0),  # given up for the same reason
        (AT_SIX, WIDE, WideLeaderInfo(7, 6), 6),
        (AT_SIX, WIDE, WideLeaderInfo(7, 7), None),
        (AT_SIX, WIDE, LeaderInfo(7), None),
    ],
)
def test_a_switch_may_move_until_a_wide_zxid_is_on_the_disk(
    layout: Layout, txn: Txn, packet: LeaderInfo, switch: int | None
) -> None:
    disk = zxid_layout.adopted(Durable(5, 5, log=(txn,), layout=layout), txn.zxid, packet)

    assert (None if disk is None or disk.layout is None else disk.layout.switch) == switch


def led(layout: Layout | None, *learners: FollowerInfo) -> ZabResult:
    """The leader 3 in epoch 1, after these have registered as the servers 1 and 2."""
    disk = Durable(layout=layout)
    part = leader.begin(Peer(3, THREE, disk), RULES)
    for sid, info in enumerate(learners, 1):
        assert isinstance(part.state, leader.Leader)
        after = leader.step(Peer(3, THREE, part.durable), part.state, Receive(sid, info), RULES)
        assert after is not None
        part = after
    return part


def test_a_leader_that_may_switch_refuses_the_learner_that_completed_its_quorum() -> None:
    """maybeSwitchZxidLayout asks nobody; the handler then refuses protocol versions below 0x11000."""
    part = led(Layout(may_switch=True), FollowerInfo(0))

    assert part.durable.layout == Layout(switch=1, may_switch=True)
    assert Disconnect(1) in part.effects
    assert not any(isinstance(effect, Send) for effect in part.effects)


def test_a_leader_that_asks_first_switches_only_with_learners_that_know() -> None:
    careful = Layout(may_switch=True, asks_first=True)

    assert Send(1, LeaderInfo(1)) in led(careful, FollowerInfo(0)).effects
    assert Send(1, WideLeaderInfo(1, 1)) in led(careful, WideFollowerInfo(0)).effects
