"""The value of a server.N line: every form that ZooKeeper's documentation names, and every kind of error in it."""

import pytest

from spec.config import Address, LearnerType, ServerAddress, ServerLine, parse_server, render_server

PLAIN = ServerAddress("zk1", 2888, 3888)


def test_host_quorum_port_and_election_port() -> None:
    assert parse_server(1, "zk1:2888:3888") == ServerLine(1, (PLAIN,))


@pytest.mark.parametrize("role", ["observer", "OBSERVER", " Observer "])
def test_an_observer_in_any_case_and_with_blanks(role: str) -> None:
    assert parse_server(1, f"zk1:2888:3888:{role}").learner_type is LearnerType.OBSERVER


def test_a_client_port_listens_on_every_address() -> None:
    assert parse_server(1, "zk1:2888:3888;2181").client == Address("0.0.0.0", 2181)


def test_a_client_address_and_a_secure_one() -> None:
    server = parse_server(1, "zk1:2888:3888:participant;zk1:2181;zk1:2281")
    assert (server.client, server.secure_client) == (Address("zk1", 2181), Address("zk1", 2281))


def test_a_secure_client_port_alone_stands_after_two_semicolons() -> None:
    server = parse_server(1, "zk1:2888:3888;;2281")
    assert (server.client, server.secure_client) == (None, Address("0.0.0.0", 2281))


def test_an_ipv6_address_stands_in_brackets() -> None:
    server = parse_server(1, "[2001:db8::1]:2888:3888:observer;[::1]:2181")
    assert server.addresses == (ServerAddress("2001:db8::1", 2888, 3888),)
    assert server.client == Address("::1", 2181)


def test_several_addresses_have_no_order() -> None:
    one, other = "zk1:2888:3888|net2:2889:3889", "net2:2889:3889|zk1:2888:3888"
    assert parse_server(1, one) == parse_server(1, other)


def test_the_role_may_stand_at_the_last_address_only() -> None:
    # QuorumServer.toString writes this form.
    assert parse_server(1, "a:1:2|b:3:4:observer").learner_type is LearnerType.OBSERVER


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("zk1:2888:3888", "zk1:2888:3888:participant"),
        ("zk1:2888:3888;2181", "zk1:2888:3888:participant;0.0.0.0:2181"),
        ("[::1]:2888:3888:observer;[::1]:1", "[::1]:2888:3888:observer;[::1]:1"),
        ("b:1:2|a:3:4", "a:3:4|b:1:2:participant"),
        ("zk1:2888:3888;;2281", "zk1:2888:3888:participant;;0.0.0.0:2281"),
    ],
)
def test_rendered_as_zookeeper_gossips_it(value: str, text: str) -> None:
    assert render_server(parse_server(1, value)) == text
