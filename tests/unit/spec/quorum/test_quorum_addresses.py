"""Connections between servers whose files give different addresses, as `QuorumCnxManager` and `Learner` make them."""

import pytest

from spec.quorum import Addresses, Port, addresses_of, opens, reaches

Line = tuple[str, int, int]
"""A host, a quorum port, an election port."""


def told(*lines: Line, on_all_ips: bool = False) -> Addresses:
    """Return the addresses of a file with one address for each of the servers 1, 2, ..."""
    return addresses_of({sid: {line} for sid, line in enumerate(lines, start=1)}, on_all_ips)


A, B, C = ("a", 2888, 3888), ("b", 2888, 3888), ("c", 2888, 3888)
OLD = told(A, B, C)


def test_with_equal_files_every_server_reaches_every_other_one() -> None:
    assert all(opens(OLD, one, told(A, B, C), other) for one in (1, 2, 3) for other in (1, 2, 3))


@pytest.mark.parametrize(
    ("moved", "election", "quorum"),
    [(("c", 2888, 3889), False, True), (("c", 2889, 3888), True, False), (("d", 2888, 3888), False, False)],
    ids=["election port", "quorum port", "host"],
)
def test_a_server_listens_where_its_own_file_says(moved: Line, election: bool, quorum: bool) -> None:
    new = told(A, B, moved)
    assert reaches(OLD, new, 3, Port.ELECTION) is election
    assert reaches(OLD, new, 3, Port.QUORUM) is quorum
    assert reaches(OLD, new, 2, Port.ELECTION) and reaches(new, OLD, 1, Port.QUORUM)


def test_a_moved_server_connects_to_the_others_though_they_cannot_connect_to_it() -> None:
    """Observed on ZooKeeper 3.8.0 with the lowest and the highest id: restarted first, it follows within 2 s."""
    for moved, new in ((1, told(("d", 2888, 3888), B, C)), (3, told(A, B, ("d", 2888, 3888)))):
        others = {1, 2, 3} - {moved}
        assert all(opens(new, moved, OLD, other) for other in others)
        assert not any(opens(OLD, other, new, moved) for other in others)


def test_a_smaller_id_sends_the_address_at_which_the_larger_one_calls_back() -> None:
    """`receiveConnection` dials the address in the message. A wildcard is not sent; then it dials by its own file."""
    assert opens(told(("d", 2888, 3888), B), 1, told(A, B), 2)
    wildcard = told(("0.0.0.0", 2888, 3999), B)
    assert not opens(wildcard, 1, told(A, B), 2)
    assert opens(wildcard, 1, told(("a", 2888, 3999), B), 2)
    assert opens(told(A, ("0.0.0.0", 2888, 3999)), 2, told(A, B), 1)  # the larger id keeps the connection it makes


def test_nobody_connects_where_all_ports_differ() -> None:
    """Observed on 3.8.0 and 3.9.5: the first server that is restarted with the new file stays LOOKING."""
    new = told(*((host, quorum + 1, election + 1) for host, quorum, election in (A, B, C)))
    assert not any(opens(a, one, b, other) for a, b in ((OLD, new), (new, OLD)) for one, other in ((1, 2), (2, 1)))


def test_one_of_several_addresses_is_enough() -> None:
    both = addresses_of({1: {A, ("a", 2889, 3889)}, 2: {B}})
    new = addresses_of({1: {("a", 2889, 3889)}, 2: {B}})
    old = addresses_of({1: {A}, 2: {B}})
    for one, other in ((both, old), (old, both), (both, new), (new, both)):
        assert reaches(one, other, 1, Port.ELECTION) and reaches(one, other, 1, Port.QUORUM)
    assert not reaches(old, new, 1, Port.QUORUM)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "d"])
def test_a_wildcard_or_quorum_listen_on_all_ips_takes_every_host(host: str) -> None:
    own = told((host, 2888, 3888), B, on_all_ips=host == "d")
    assert reaches(told(A, B), own, 1, Port.QUORUM)
    assert not reaches(told(("a", 2889, 3889), B), own, 1, Port.QUORUM)


def test_hosts_are_compared_without_case_and_strangers_are_no_question_of_addresses() -> None:
    assert reaches(told(("A", 2888, 3888), B), told(A, C), 1, Port.QUORUM)
    assert reaches(OLD, told(A, B), 3, Port.QUORUM) and reaches(None, OLD, 1, Port.QUORUM)
