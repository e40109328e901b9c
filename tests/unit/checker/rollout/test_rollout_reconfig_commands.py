"""The `reconfig` commands of a change, and the obstacles.

The forms of the commands are those of ZooKeeper's Dynamic Reconfiguration Guide and of kazoo's `KazooClient.reconfig`.
The refusals are those of `PrepRequestProcessor.pRequest2Txn`, as docs/reference-reconfig-facts.md has them from runs.
"""

from pathlib import Path

import pytest

from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.reconfig.commands import (
    MembershipCommand,
    Obstacle,
    Refusal,
    at_once,
    member_lines,
    one_at_a_time,
    refusals,
)
from checker.rollout.stages import whole
from spec.quorum import MembershipChange, Sid, View, majority_view
from tests.support.reconfig_folders import dynamic_folder

LINES = {sid: f"zk{sid}:2888:3888:participant;2181" for sid in range(1, 7)}


def changes(old: View, new: View) -> list[MembershipChange]:
    return [each.change for each in one_at_a_time(old, new, LINES)]


def change(*add: Sid, observers: tuple[Sid, ...] = (), remove: tuple[Sid, ...] = ()) -> MembershipChange:
    return MembershipChange(frozenset(add), frozenset(observers), frozenset(remove))


def test_growth_is_one_voter_in_each_command() -> None:
    assert changes(majority_view((1, 2, 3)), majority_view((1, 2, 3, 4, 5))) == [change(4), change(5)]


def test_a_server_is_replaced_by_adding_before_removing() -> None:
    assert changes(majority_view((1, 2, 3)), majority_view((1, 2, 4))) == [change(4), change(remove=(3,))]


def test_observers_come_in_one_command_and_go_in_another() -> None:
    """They change no quorum."""
    old, new = majority_view((1, 2, 3), (4,)), majority_view((1, 2, 3), (5, 6))
    assert changes(old, new) == [change(observers=(5, 6)), change(remove=(4,))]


def test_a_promotion_adds_the_observer_as_a_participant() -> None:
    (command,) = one_at_a_time(majority_view((1, 2, 3), (4,)), majority_view((1, 2, 3, 4)), LINES)
    assert command.zkcli == 'reconfig -add "server.4=zk4:2888:3888:participant;2181"'
    assert command.joiners == (), "it runs already"


@pytest.mark.parametrize(
    ("voters", "observers", "needed"),
    [(3, 1, (1, 2, 3)), (3, 2, (1, 2, 3)), (4, 1, ()), (4, 2, (1, 2, 3, 4)), (5, 1, ())],
)
def test_a_promotion_that_needs_every_voter_names_them(voters: int, observers: int, needed: tuple[Sid, ...]) -> None:
    """Observers acknowledge nothing: of {1, 2, 3} and observer 4, a majority of four is all of {1, 2, 3}."""
    old, last = range(1, voters + 1), voters + observers
    (command,) = at_once(majority_view(old, range(voters + 1, last + 1)), majority_view(range(1, last + 1)), LINES)
    assert command.needed == needed


def test_a_joiner_acknowledges_so_no_voter_is_needed() -> None:
    (command,) = at_once(majority_view((1, 2, 3)), majority_view((1, 2, 3, 4)), LINES)
    assert command.needed == ()


def test_a_demotion_adds_the_voter_as_an_observer() -> None:
    (command,) = one_at_a_time(majority_view((1, 2, 3)), majority_view((1, 2), (3,)), LINES)
    assert command.zkcli == 'reconfig -add "server.3=zk3:2888:3888:observer;2181"'
    assert command.leaving == ()


def replaced() -> MembershipCommand:
    (command,) = at_once(majority_view((1, 2, 3)), majority_view((1, 2, 4)), LINES)
    return command


def test_one_command_can_add_and_remove_in_both_forms() -> None:
    line = "server.4=zk4:2888:3888:participant;2181"
    assert replaced().zkcli == f'reconfig -remove 3 -add "{line}"'
    assert replaced().kazoo == f"client.reconfig(joining='{line}', leaving='3', new_members=None, from_config=-1)"


def test_the_call_of_kazoo_is_python_with_none_for_what_is_not_given() -> None:
    """`None` leaves that part of the request out (kazoo, `KazooClient.reconfig`)."""
    (command,) = one_at_a_time(majority_view((1, 2, 3)), majority_view((1, 2)), LINES)
    given = eval(command.kazoo, {"client": type("Client", (), {"reconfig": staticmethod(lambda **keys: keys)})})
    assert given == {"joining": None, "leaving": "3", "new_members": None, "from_config": -1}


def test_the_file_of_a_joiner_lists_the_present_members_and_itself() -> None:
    """As the Dynamic Reconfiguration Guide demands; another joiner is not in it."""
    (command,) = at_once(majority_view((1, 2, 3)), majority_view((1, 2, 3, 4, 5)), LINES)
    assert list(command.file_of(5)) == [1, 2, 3, 5]


def test_quorums_of_one_voter_more_meet_and_those_of_a_replacement_need_not() -> None:
    """2 + 3 > 4, and 2 + 2 = 4."""
    (grown,) = one_at_a_time(majority_view((1, 2, 3)), majority_view((1, 2, 3, 4)), LINES)
    assert grown.disjoint is None
    disjoint = replaced().disjoint
    assert disjoint is not None and not disjoint.a & disjoint.b


# The lines and the obstacles of files.


def refused(old: Folder, new: Folder) -> tuple[Refusal, ...]:
    return refusals(old, new, whole(old, new))


def test_a_change_between_enabled_files_is_not_refused(tmp_path: Path) -> None:
    assert refused(dynamic_folder(tmp_path / "a", (1, 2, 3)), dynamic_folder(tmp_path / "b", (1, 2, 3, 4))) == ()


def test_a_line_without_a_client_address_gets_the_client_port_of_its_server(tmp_path: Path) -> None:
    (tmp_path / "zoo.cfg").write_text(
        "dataDir=/d\nclientPort=2182\nreconfigEnabled=true\nserver.1=a:1:2\nserver.2=b:1:2\n"
    )
    folder = read_folder(tmp_path)
    assert member_lines(folder, folder) == {1: "a:1:2:participant;2182", 2: "b:1:2:participant;2182"}


def test_the_host_of_a_line_is_the_one_that_others_dial(tmp_path: Path) -> None:
    for sid, host in ((1, "0.0.0.0"), (2, "a")):
        folder = tmp_path / str(sid)
        folder.mkdir()
        other = "b" if sid == 1 else "0.0.0.0"
        (folder / "zoo.cfg").write_text(f"dataDir=/d\nclientPort=2181\nserver.1={host}:1:2\nserver.2={other}:1:2\n")
    folder_read = read_folder(tmp_path)
    assert member_lines(folder_read, folder_read)[1].startswith("a:1:2:")


@pytest.mark.parametrize(
    ("disabled", "expected"),
    [((2,), Refusal(Obstacle.DISABLED_AT_SOME, (2,))), ((1, 2, 3), Refusal(Obstacle.DISABLED, (1, 2, 3)))],
)
def test_servers_without_reconfig_enabled_are_named(
    tmp_path: Path, disabled: tuple[Sid, ...], expected: Refusal
) -> None:
    old = dynamic_folder(tmp_path / "a", (1, 2, 3), disabled=disabled)
    assert refused(old, dynamic_folder(tmp_path / "b", (1, 2, 3, 4))) == (expected,)
