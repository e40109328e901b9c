"""The bound of `recover` against a model of Zab's disks: never wrong, and the smallest possible.

Expected values come from the model (`tests.support.zab_disks`), which knows the acknowledged writes. The first test
explores it in full: for each state of the remaining disks the possible losses are the union over all runs that leave
these disks. In the second the disks are real files of random runs, and tightness is decided by enumeration of worlds.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from checker.recover.bound import LossJudge
from spec.quorum import View, hierarchical_view, majority_view
from tests.support.disasters import judged
from tests.support.recover_bounds import Shown, answered
from tests.support.zab_disks import ModelDisk, ModelState, Txn, first, steps

GROUPS = hierarchical_view({1: (0, 1), 2: (2,)}, {0: 2, 1: 1, 2: 1})
"""Server 0 decides for the first group, and both groups are needed."""
Evidence = tuple[tuple[int, Shown], ...]


def all_states(view: View, epochs: int, writes: int) -> set[ModelState]:
    found = front = {first(len(view.voters))}
    while front:
        front = {after for state in front for after in steps(state, view.contains_quorum, epochs, writes)} - found
        found = found | front
    return found


def damages(disk: ModelDisk) -> Iterator[Shown]:
    """A disk whose log has lost its end or a part in the middle."""
    log = disk.log
    for start in range(len(log)):
        after = log[start - 1] if start else (0, 0)
        yield Shown(disk.current, log[:start], ((after, None),))
        for stop in range(start + 1, len(log)):
            yield Shown(disk.current, (*log[:start], *log[stop:]), ((after, log[stop]),))


def losses_by_evidence(states: set[ModelState], servers: int) -> dict[Evidence, set[Txn]]:
    """The writes that may have been acknowledged, for each set of remaining disks, one of them perhaps damaged."""
    acknowledged: dict[Evidence, set[Txn]] = defaultdict(set)
    for state in states:
        for size in range(1, servers + 1):
            for remaining in combinations(range(servers), size):
                whole = tuple((sid, Shown(state.disks[sid].current, state.disks[sid].log)) for sid in remaining)
                acknowledged[whole] |= state.acknowledged
                for place, sid in enumerate(remaining):
                    for damaged in damages(state.disks[sid]):
                        acknowledged[(*whole[:place], (sid, damaged), *whole[place + 1 :])] |= state.acknowledged
    return acknowledged


@pytest.mark.parametrize(
    ("view", "epochs", "writes"),
    [
        (majority_view(range(3)), 2, 2),
        (majority_view(range(3)), 3, 1),
        (GROUPS, 2, 2),
        pytest.param(majority_view(range(4)), 2, 1, marks=pytest.mark.slow),
        pytest.param(majority_view(range(3)), 3, 2, marks=pytest.mark.slow),
    ],
    ids=["two epochs", "three epochs", "groups with weights", "four servers", "three epochs, two writes each"],
)
def test_the_bound_is_that_of_all_runs(view: View, epochs: int, writes: int) -> None:
    losses = losses_by_evidence(all_states(view, epochs, writes), len(view.voters))
    wrong, loose, lossy = [], [], 0
    for evidence, acknowledged in losses.items():
        answer = answered(dict(evidence), view)
        shown = {txn for _, disk in evidence for txn in disk.log}
        lost = acknowledged - set(answer.kept)
        lossy += bool(lost)
        if not lost & shown <= answer.possible or (lost - shown and not answer.unknown):
            wrong.append((evidence, answer, lost))
        # At the limits of the exploration there are no runs with one epoch or one write more.
        is_inside = all(
            disk.current < epochs and all(txn[0] < epochs and txn[1] < writes for txn in disk.log)
            for _, disk in evidence
            if disk.current is not None
        )
        if is_inside and (answer.possible != lost & shown or answer.unknown != bool(lost - shown)):
            loose.append((evidence, answer, lost))
    assert lossy > 100
    assert wrong == []
    assert loose == []


def test_disasters_on_real_files(tmp_path: Path) -> None:
    """Fifty seeds here; `python -m tests.reality.disasters --seeds 1000` takes more."""
    verdicts = [judged(seed, tmp_path / str(seed))[1] for seed in range(50)]
    assert [verdict.wrong for verdict in verdicts if verdict.wrong] == []
    assert [verdict.loose for verdict in verdicts if verdict.loose] == []
    assert sum(verdict.lost > 0 for verdict in verdicts) >= 3
    assert sum(verdict.open for verdict in verdicts) >= 10


@pytest.mark.parametrize(("quorum", "noticed"), [(False, "wrong"), (True, "loose")])
def test_a_bound_that_counts_no_quorum_is_noticed(
    quorum: bool, noticed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LossJudge, "_is_quorum", lambda _judge, _disks: quorum)
    verdicts = [judged(seed, tmp_path / str(seed))[1] for seed in range(50)]
    assert any(getattr(verdict, noticed) for verdict in verdicts)
