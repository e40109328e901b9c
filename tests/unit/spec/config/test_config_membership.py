"""The configuration that a `reconfig` request asks for: the present one with servers that leave and join.

Expected values are from ZooKeeper 3.9.5, `PrepRequestProcessor.pRequest2Txn` (case reconfig), and from real servers
(`docs/reference-reconfig-facts.md`, refusals).
"""

import pytest

from spec.config import parse_ensemble
from spec.config.dynamic_files import LONGEST_CONFIGURATION
from spec.quorum import View
from spec.service.reconfig_request import BadMembersError, UnreadableMembersError, requested_view

LINES = {
    1: "server.1=one:2888:3888:participant;2181",
    2: "server.2=two:2888:3888:participant;2181",
    3: "server.3=three:2888:3888:participant;2181",
    4: "server.4=four:2888:3888:participant;2181",
}
PRESENT = parse_ensemble("\n".join(LINES[sid] for sid in (1, 2, 3)) + "\nversion=100000000")
GROUPS = parse_ensemble("\n".join(LINES[sid] for sid in (1, 2, 3)) + "\ngroup.1=1:2:3\nversion=100000000")
VERSION = 0x100000007


def asked(joining: str = "", leaving: str = "", members: str = "") -> View:
    return requested_view(PRESENT, joining, leaving, members, VERSION)


def test_a_joiner_is_added_with_its_line_and_the_version_is_the_zxid() -> None:
    view = asked(joining=LINES[4])
    assert (view.voters, view.observers, view.version) == ({1, 2, 3, 4}, set(), VERSION)
    assert "server.4=four:2888:3888:participant;0.0.0.0:2181" in view.text.splitlines()
    assert "version" not in view.text


def test_several_servers_leave_at_once_blanks_around_commas_do_not_matter() -> None:
    assert asked(leaving=" 1 , 2,").voters == {3}


def test_an_unknown_server_may_leave() -> None:
    assert asked(leaving="9").voters == {1, 2, 3}


def test_a_server_that_leaves_and_joins_stays_with_its_new_role() -> None:
    view = asked(joining="server.3=three:2888:3888:observer;2181", leaving="3")
    assert (view.voters, view.observers) == ({1, 2}, {3})


def test_new_members_replace_the_whole_configuration() -> None:
    assert asked(members=f"{LINES[1]},{LINES[2]}").voters == {1, 2}
    assert asked(members=f"{LINES[1]}\n{LINES[4]}").voters == {1, 4}


@pytest.mark.parametrize(
    ("joining", "said"),
    [
        pytest.param("server.4=four:2888:3888:participant", "has no client address", id="no client address"),
        pytest.param("server.4", "is not a server; write server.N=", id="no equals sign"),
        pytest.param("server.4=four:2888", "the election port is missing", id="one port"),
        pytest.param("server.4=two:2888:3999;2182", "has the address two:2888 of server 2", id="the port of another"),
        pytest.param("server.3=moved:2888:3888;2181", "server 3 has another address", id="a member that moves"),
    ],
)
def test_a_joiner_that_is_refused_is_refused_with_the_reason(joining: str, said: str) -> None:
    with pytest.raises(BadMembersError, match=said):
        asked(joining=joining)


def test_servers_on_the_loopback_interface_may_have_equal_addresses() -> None:
    """`QuorumServer.checkAddressDuplicate` leaves loopback addresses out."""
    present = parse_ensemble("server.1=127.0.0.1:1:2:participant;3\nserver.2=127.0.0.1:4:5:participant;6\nversion=1")
    view = requested_view(present, "server.3=127.0.0.1:1:2:participant;3", "", "", VERSION)
    assert view.voters == {1, 2, 3}


@pytest.mark.parametrize(("joining", "leaving"), [("", "two"), ("server.x=four:2888:3888;2181", "")])
def test_an_id_that_is_no_number_cannot_be_read(joining: str, leaving: str) -> None:
    with pytest.raises(UnreadableMembersError, match="is not the id of a server"):
        asked(joining=joining, leaving=leaving)


def test_new_members_with_an_unknown_key_are_refused() -> None:
    with pytest.raises(BadMembersError, match="unrecognised parameter color"):
        asked(members=f"{LINES[1]}\ncolor=red")


def test_groups_are_changed_as_a_whole_only() -> None:
    with pytest.raises(BadMembersError, match="send all new members"):
        requested_view(GROUPS, LINES[4], "", "", VERSION)
    assert requested_view(GROUPS, "", "", "\n".join(LINES.values()), VERSION).voters == {1, 2, 3, 4}


@pytest.mark.parametrize("line", ["server.4=x\nserver.9:2888:3888;2181", "server.4=x\\y:1:2;3", "server.4=[[x]:1:2;3"])
def test_a_host_that_a_line_cannot_express_is_refused(line: str) -> None:
    """Every server would read other lines than the leader, and the leader could not start again."""
    with pytest.raises(BadMembersError, match="write hosts without"):
        asked(joining=line)


def test_a_configuration_that_is_longer_than_a_file_may_be_is_refused() -> None:
    line = "server.4={}:2888:3888;2181"
    with pytest.raises(BadMembersError, match=f"the limit is {LONGEST_CONFIGURATION:,}"):
        asked(joining=line.format("h" * LONGEST_CONFIGURATION))
    with pytest.raises(BadMembersError, match=f"the limit is {LONGEST_CONFIGURATION:,}"):
        asked(joining=line.format("h" * (LONGEST_CONFIGURATION - len(line))))


def test_an_address_is_free_again_once_its_server_has_another_line() -> None:
    first, again = "server.4=four:1:2;3", "server.4=fourth:1:2;3"
    assert asked(joining=f"{first},{again},server.5=four:1:2;3").voters == {1, 2, 3, 4, 5}
