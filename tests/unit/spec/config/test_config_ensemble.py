"""The configuration text that servers exchange during elections: QuorumVerifier.toString and its parser."""

import pytest

from spec.config import ConfigError, parse_ensemble, render_ensemble
from spec.quorum import hierarchical_view, majority_view

MAJORITY = (
    "server.1=127.0.0.1:2888:3888:participant\n"
    "server.2=127.0.0.1:2889:3889:participant;0.0.0.0:2182\n"
    "server.3=127.0.0.1:2890:3890:observer\n"
    "version=100000003"
)
HIERARCHY = (
    "server.1=a:1:2:participant\nserver.2=b:1:2:participant\nserver.3=c:1:2:participant\n"
    "group.1=1:2\ngroup.2=3\nweight.1=2\nweight.2=1\nweight.3=1\nversion=0"
)


def test_the_view_of_a_gossiped_text() -> None:
    assert parse_ensemble(MAJORITY).view == majority_view({1, 2}, observers={3}, version=0x100000003)


def test_groups_and_weights_of_a_gossiped_text() -> None:
    assert parse_ensemble(HIERARCHY).view == hierarchical_view({1: (1, 2), 2: (3,)}, {1: 2})


@pytest.mark.parametrize("text", [MAJORITY, HIERARCHY], ids=["majority", "hierarchy"])
def test_the_text_is_written_as_it_was_read(text: str) -> None:
    assert render_ensemble(parse_ensemble(text)) == text


@pytest.mark.parametrize("weights", [(1 << 62, 1 << 62, 1), (1, (1 << 63) - 2, 1), (1, -(1 << 63), 1)])
def test_weights_whose_sum_wraps_in_java_are_refused_by_name(weights: tuple[int, int, int]) -> None:
    """Of the first weights doubled, QuorumHierarchical of 3.9.5 calls {1} a quorum and {1, 2} none."""
    servers = "\n".join(f"server.{sid}=h{sid}:1:2\nweight.{sid}={weight}" for sid, weight in enumerate(weights, 1))
    heaviest = max((1, 2), key=lambda sid: abs(weights[sid - 1]))
    with pytest.raises(ConfigError, match=f"weight.{heaviest}: the weights of group 5 add up to more than 64 bits"):
        parse_ensemble(f"{servers}\ngroup.5=1:2:3")


def test_weights_may_add_up_to_the_largest_number_of_java() -> None:
    servers = "\n".join(f"server.{sid}=h{sid}:1:2\nweight.{sid}=4611686018427387903" for sid in (1, 2))
    view = parse_ensemble(f"{servers}\nserver.3=h3:1:2\ngroup.1=1:2:3").view
    assert view.contains_quorum({1, 3})
    assert not view.contains_quorum({1})


def test_nothing_else_may_stand_in_it() -> None:
    with pytest.raises(ConfigError, match="config:5: unrecognised parameter tickTime"):
        parse_ensemble(MAJORITY + "\ntickTime=2000")


def test_one_participant_and_an_observer_need_standalone_mode_to_be_off() -> None:
    text = "server.1=a:1:2\nserver.2=b:1:2:observer"
    with pytest.raises(ConfigError, match="observers with 1 participant"):
        parse_ensemble(text)
    assert parse_ensemble(text, standalone_enabled=False).view == majority_view({1}, observers={2})


def test_a_weight_that_is_no_number_is_an_error() -> None:
    """QuorumHierarchical.parse of 3.9.5 refuses it."""
    servers = "server.1=h1:1:2\nweight.1=heavy"
    with pytest.raises(ConfigError, match="weight 'heavy' is not a whole number"):
        parse_ensemble(f"{servers}\ngroup.1=1\nversion=0")
