"""TLS between servers in the planner. What each pair of settings can do is that of real servers, by ZooKeeper's source.

`QuorumCnxManager` and `Learner` connect by TLS if `sslQuorum`; `UnifiedServerSocket` accepts both with
`portUnification`, and TLS alone with `sslQuorum` alone. tests/node/test_tls_between_servers.py shows it on
real servers.
"""

import pytest

from checker.rollout.files.keys import Handshake

PLAIN, UNIFIED = Handshake(False, False), Handshake(False, True)
BOTH, TLS = Handshake(True, True), Handshake(True, False)
SASL = Handshake(knows_sasl=True, proves_itself=True, demands_proof=True)


@pytest.mark.parametrize(
    ("one", "other", "talk"),
    [
        (PLAIN, PLAIN, True),
        (PLAIN, UNIFIED, True),
        (PLAIN, BOTH, False),  # the plain server accepts no TLS
        (PLAIN, TLS, False),
        (UNIFIED, BOTH, True),
        (UNIFIED, TLS, False),  # the one that connects plainly is refused
        (BOTH, TLS, True),
        (TLS, TLS, True),
    ],
)
def test_two_servers_talk_if_each_can_connect_to_the_other(one: Handshake, other: Handshake, talk: bool) -> None:
    assert (one.talks_with(other), other.talks_with(one)) == (talk, talk)


@pytest.mark.parametrize(
    ("one", "other", "talk"),
    [
        (PLAIN, Handshake(knows_sasl=True), True),
        (PLAIN, Handshake(knows_sasl=True, proves_itself=True), False),  # the plain one reads no proof
        (Handshake(knows_sasl=True), Handshake(knows_sasl=True, proves_itself=True), True),
        (Handshake(knows_sasl=True), SASL, False),  # the one that proves nothing is refused
        (Handshake(knows_sasl=True, proves_itself=True), SASL, True),
    ],
)
def test_sasl_needs_its_three_steps(one: Handshake, other: Handshake, talk: bool) -> None:
    assert (one.talks_with(other), other.talks_with(one)) == (talk, talk)
