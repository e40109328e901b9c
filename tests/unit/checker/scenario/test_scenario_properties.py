"""The registry of properties, and the properties of the servers' states."""

from typing import Any

import pytest

from checker.engine import Finding, Kind
from checker.engine.plain import explore
from checker.models.ensemble import Budgets, File, Grain, Member, Prologue, Setup, ensemble
from checker.properties import ENSEMBLE_PROPERTIES, ParameterError, UnknownPropertyError
from spec.quorum import majority_view

THREE = File("zoo-3.cfg", majority_view([1, 2, 3]))


def setup(crashes: int = 0, partitions: int = 0, servers: int = 3) -> Setup:
    file = File("zoo.cfg", majority_view(range(1, servers + 1)))
    sids = tuple(range(1, servers + 1))
    members = tuple(Member(sid, file) for sid in sids)
    budgets = Budgets(crashes=crashes, partitions=partitions)
    return Setup(members, Grain.ORACLE, (Prologue(sids),), budgets=budgets)


def found(made: Setup, name: str, parameter: Any = None) -> Finding | None:
    """Return the finding of a complete exploration with one property."""
    prop = ENSEMBLE_PROPERTIES.build(made, name, parameter)
    result = explore(ensemble("test", made, [prop])).found
    return result[prop.name].finding if prop.name in result else None


def test_every_property_has_a_meaning_and_a_kind() -> None:
    for name in ENSEMBLE_PROPERTIES:
        assert ENSEMBLE_PROPERTIES.find(name).meaning
        assert ENSEMBLE_PROPERTIES.find(name).kind in Kind


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownPropertyError, match=r"unknown property 'Oneleader'; did you mean OneLeader\?"):
        ENSEMBLE_PROPERTIES.build(setup(), "Oneleader")


def test_a_parameter_that_is_missing_or_too_much_is_an_error() -> None:
    with pytest.raises(ParameterError, match="Leads takes a parameter; give the id of a server"):
        ENSEMBLE_PROPERTIES.build(setup(), "Leads")
    with pytest.raises(ParameterError, match="Elected takes no parameter; write Elected alone"):
        ENSEMBLE_PROPERTIES.build(setup(), "Elected", 3)


@pytest.mark.parametrize(
    ("servers", "losses", "survives"),
    [(2, 1, False), (3, 1, True), (3, 2, False), (4, 1, True), (4, 2, False), (5, 2, True)],
)
def test_how_many_losses_an_ensemble_survives(servers: int, losses: int, survives: bool) -> None:
    """Requirement R2."""
    made = setup(crashes=losses, servers=servers)
    assert (found(made, "Serves") is None) is survives
    assert (found(made, "ServesNoMore") is None) is not survives


def test_a_leader_that_is_cut_off_from_its_quorum_does_not_serve() -> None:
    """Requirement R3: three servers always have a majority side; two servers have none in a partition."""
    assert found(setup(partitions=1), "Serves") is None
    assert found(setup(partitions=1, servers=2), "ServesNoMore") is None


def test_stands_is_a_witness_and_never_stands_its_contrary() -> None:
    after_the_loss = {1: "FOLLOWING 2", 2: "LEADING", 3: "down"}
    assert found(setup(crashes=1), "Stands", after_the_loss) is not None
    assert found(setup(crashes=1), "NeverStands", after_the_loss) is not None
    assert found(setup(crashes=1), "Stands", {1: "LEADING"}) is None
    assert found(setup(crashes=1), "NeverStands", {1: "LEADING"}) is None


def test_a_pattern_may_name_the_file() -> None:
    assert found(setup(), "Stands", {3: {"state": "LEADING", "file": "zoo.cfg"}}) is not None
    with pytest.raises(ParameterError, match=r"no server here has a file 'zoo-5.cfg'; did you mean zoo.cfg?"):
        ENSEMBLE_PROPERTIES.build(setup(), "Stands", {3: {"file": "zoo-5.cfg"}})


def test_a_bucket_names_a_state_and_votes() -> None:
    with pytest.raises(ParameterError, match="a bucket has a state and votes, and nothing else"):
        ENSEMBLE_PROPERTIES.build(setup(), "Buckets", {1: {"votes": {1: 1}}})
    with pytest.raises(ParameterError, match="is not a state"):
        ENSEMBLE_PROPERTIES.build(setup(), "Buckets", {1: {"state": "SLEEPING", "votes": {1: 1}}})
