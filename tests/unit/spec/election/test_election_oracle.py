"""Tests of the election oracle: the possible outcomes of an election, without messages.

Expected outcomes are written leader -> the sets of servers that can decide for it together.
"""

from collections.abc import Iterable

import msgspec

from spec.durable import Durable
from spec.election import Elected, ServerState
from spec.election.oracle import Link, outcomes
from spec.quorum import View, majority_view
from spec.server import Server, start, step, summary

THREE = majority_view({1, 2, 3})
FIVE = majority_view({1, 2, 3, 4, 5})


def looking(sid: int, view: View, zxid: int = 0) -> Server:
    done = start(Server(sid, view, Durable(snapshot=zxid)))
    assert done is not None
    return done.state


def elect(servers: Iterable[Server], leader: int, *members: int) -> list[Server]:
    """The servers after the outcome with exactly these members."""
    before = list(servers)
    (chosen,) = [each for each in outcomes(map(summary, before)) if (each.leader, each.members) == (leader, members)]
    after = []
    for server in before:
        done = step(server, Elected(chosen.vote, chosen.round)) if server.sid in members else None
        after.append(server if done is None else done.state)
    return after


def decisions(servers: Iterable[Server], cut: Iterable[Link] = ()) -> dict[int, set[frozenset[int]]]:
    found: dict[int, set[frozenset[int]]] = {}
    for each in outcomes(map(summary, servers), cut):
        found.setdefault(each.leader, set()).add(frozenset(each.members))
    return found


def sets(*members: Iterable[int]) -> set[frozenset[int]]:
    return {frozenset(each) for each in members}


def test_equal_servers_elect_the_highest_id_of_a_quorum() -> None:
    """2 can win when 3 is late; 3 may then still join it, alone or with 1 still undecided."""
    assert decisions(looking(sid, THREE) for sid in (1, 2, 3)) == {
        2: sets({1, 2}, {2, 3}, {1, 2, 3}),
        3: sets({1, 3}, {2, 3}, {1, 2, 3}),
    }


def test_of_two_the_newer_data_wins() -> None:
    assert decisions([looking(1, THREE, zxid=10), looking(3, THREE, zxid=8)]) == {1: sets({1, 3})}


def test_nobody_is_elected_without_a_quorum() -> None:
    assert decisions([looking(1, FIVE), looking(2, FIVE)]) == {}


def test_six_servers_cut_three_from_three_elect_nobody() -> None:
    six = majority_view(range(1, 7))
    cut = [frozenset({low, high}) for low in (1, 2, 3) for high in (4, 5, 6)]

    assert decisions((looking(sid, six) for sid in range(1, 7)), cut) == {}


def test_a_server_joins_a_leader_that_a_quorum_follows() -> None:
    led = elect([looking(1, THREE), looking(2, THREE)], 2, 1, 2)

    assert decisions([*led, looking(3, THREE)]) == {2: sets({3})}


def test_but_not_over_links_that_are_cut() -> None:
    led = elect([looking(1, THREE), looking(2, THREE)], 2, 1, 2)

    assert decisions([*led, looking(3, THREE)], [frozenset({2, 3})]) == {}


def test_an_observer_observes_and_elects_nobody() -> None:
    view = majority_view({1, 2}, observers={3})
    servers = [looking(sid, view) for sid in (1, 2, 3)]

    assert decisions(servers) == {2: sets({1, 2}, {1, 2, 3})}
    assert summary(elect(servers, 2, 1, 2, 3)[2]).state is ServerState.OBSERVING


def test_the_roll_out_with_the_leader_first_can_elect_two_leaders() -> None:
    """1 and 3 have the file of three servers and elect 3; 2, 4 and 5 have that of five and elect 5."""
    servers = [looking(sid, THREE if sid in {1, 3} else FIVE) for sid in (1, 2, 3, 4, 5)]
    split = elect(elect(servers, 3, 1, 3), 5, 2, 4, 5)

    assert [summary(each).leader for each in split] == [3, 5, 3, 5, 5]


def test_from_three_to_four_it_cannot() -> None:
    """2 and 4 are two of four, and the two on the old file follow 3."""
    four = majority_view({1, 2, 3, 4})
    servers = [looking(sid, THREE if sid in {1, 3} else four) for sid in (1, 2, 3, 4)]
    led = elect(servers, 3, 1, 3)

    assert 4 not in decisions(led)


def test_a_server_in_a_later_round_does_not_count_votes_of_an_earlier_one() -> None:
    """`lookForLeader`: "n.electionEpoch < logicalclock" is ignored.

    3, 4 and 5 decided for 5 in round 1, and 2 looks in that round. 1 cannot hear 3. It looks in round 2, so it has
    only 4 and 5 (out of the election): no quorum of five. In round 1 the vote of 2 makes a quorum.
    """
    led = elect([looking(sid, FIVE) for sid in (3, 4, 5)], 5, 3, 4, 5)
    one, *others = map(summary, [looking(1, FIVE), looking(2, FIVE), *led])
    cut = [frozenset({1, 3})]

    def joining(election_round: int) -> set[tuple[int, ...]]:
        found = outcomes([msgspec.structs.replace(one, round=election_round), *others], cut)
        return {each.members for each in found if each.leader == 5}

    assert joining(1) == {(1,), (2,)}
    assert joining(2) == {(2,)}


def test_a_server_that_cannot_hear_the_leader_does_not_join_on_the_word_of_its_followers() -> None:
    """`checkLeader`: three of five report that they follow 5, and 5 itself has not reported that it leads."""
    led = elect([looking(sid, FIVE) for sid in (2, 3, 4, 5)], 5, 2, 3, 4, 5)
    ensemble = [looking(1, FIVE), *led]

    assert decisions(ensemble) == {5: sets({1})}
    assert decisions(ensemble, [frozenset({1, 5})]) == {}


def test_a_candidate_that_a_better_vote_lifts_to_a_round_supports_that_vote_there() -> None:
    """`lookForLeader`: a later round clears the votes received, and the better proposal replaces the server's own one.

    3 looks in round 2, and 2 can enter that round only with the vote of 3. So only the voters of round 1 elect 2.
    """
    servers = [summary(looking(sid, THREE)) for sid in (1, 2, 3)]
    servers[2] = msgspec.structs.replace(servers[2], round=2)
    found = [each for each in outcomes(servers) if each.leader == 2]

    assert {each.round for each in found} == {1}
    assert all(1 in each.members for each in found)


def test_servers_that_elect_a_leader_in_one_round_do_not_elect_it_in_a_later_one() -> None:
    """The two outcomes differ only in the round, and the lower one comes first.

    2 has the newest data, so the vote of 3 in round 2 lifts it without a change of its vote.
    """
    servers = [summary(looking(sid, THREE, zxid=10 if sid == 2 else 0)) for sid in (1, 2, 3)]
    servers[2] = msgspec.structs.replace(servers[2], round=2)
    found = [(each.members, each.round) for each in outcomes(servers) if each.leader == 2]

    assert ((1, 2), 1) in found
    assert ((1, 2), 2) not in found
