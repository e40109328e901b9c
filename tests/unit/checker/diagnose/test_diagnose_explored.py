"""The next steps of a diagnosis, explored from the disks of real incidents and of small ensembles.

The expected answers follow from Zab: a leader of a higher epoch wins an election, and its followers drop the rest; a
quorum that meets every quorum of acknowledgements elects a leader with all that was acknowledged.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from checker.diagnose.cause import NextStep, StepKind
from checker.diagnose.doubt import WriteFate, doubts
from checker.diagnose.explored import StepsExplored, explored
from checker.diagnose.report import Diagnosis, data, diagnose, first_steps, text_lines
from checker.diagnose.situation import Situation
from checker.rollout.inputs.live import LiveServer
from refimpl.disk import epochs
from spec.quorum import Sid
from tests.unit.checker.diagnose.test_diagnose import Incident, flip_last_record, incident, write_server

__all__ = ["incident"]


def start(*servers: Sid) -> NextStep:
    return NextStep(StepKind.START, servers, "")


def three(home: Path, *logs: int) -> Diagnosis:
    """Servers whose disks have this many transactions of epoch 1."""
    for sid, last in enumerate(logs, start=1):
        write_server(home / str(sid), sid, range(1, last + 1))
    return diagnose([str(home)])


def of(answer: Diagnosis, *steps: NextStep) -> StepsExplored:
    outcome = explored(answer.situation, answer.doubts, steps)
    assert outcome is not None
    return outcome


def test_the_steps_of_a_real_incident_are_safe_from_its_disks(incident: Incident) -> None:
    answer = diagnose([str(incident("trunc-after-snap"))])
    assert answer.explored is not None
    assert answer.explored.is_whole and answer.explored.served
    assert not answer.explored.missing and not answer.explored.unsafe_leaders
    assert any("states, all of them" in line for line in text_lines(answer))


def test_a_server_of_a_higher_epoch_without_the_write_wins(incident: Incident) -> None:
    """Finding D: 1 and 2 have an acknowledged write, and 3 has a higher epoch without it."""
    answer = diagnose([str(incident("observer-becomes-voter"))])
    assert of(answer, start(2, 3)).unsafe_leaders == (3,)
    assert of(answer, start(1, 2)).unsafe_leaders == (3,)  # 3 may start at any moment
    stop = NextStep(StepKind.STOP, (3,), "")
    alone = of(answer, stop, start(1, 2))
    assert (alone.unsafe_leaders, alone.is_whole, alone.served) == ((), True, True)


def test_an_empty_disk_in_a_quorum_loses_the_answered_write(tmp_path: Path) -> None:
    """Servers 1 and 2 can have acknowledged transactions 4 and 5. Server 2 gets an empty disk, and starts with 3."""
    answer = three(tmp_path, 5, 5, 3)
    erase = NextStep(StepKind.ERASE, (2,), "")
    assert of(answer, NextStep(StepKind.STOP, (1,), ""), erase, start(2, 3)).unsafe_leaders == (3,)
    safe = of(answer, start(1, 3), erase, start(2))
    assert (safe.unsafe_leaders, safe.is_whole) == ((), True)


def test_an_empty_disk_that_was_given_is_one_without_data(tmp_path: Path) -> None:
    """Servers 2 and 3 may have acknowledged transactions 4 and 5 before server 2 lost its disk."""
    three(tmp_path, 3, 3, 5)
    shutil.rmtree(tmp_path / "2" / "data" / "version-2")
    (tmp_path / "2" / "data" / "version-2").mkdir()
    answer = diagnose([str(tmp_path)])
    assert of(answer, start(2, 3)).unsafe_leaders == (1,)
    safe = of(answer, start(3, 1), start(2))
    assert (safe.unsafe_leaders, safe.is_whole, safe.served) == ((), True, True)


def test_unsafe_steps_are_replaced_by_the_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = three(tmp_path, 5, 5, 3)
    cause = replace(diagnose_fault(tmp_path).causes[0], steps=(NextStep(StepKind.ERASE, (2,), ""), start(2, 3)))
    monkeypatch.setattr("checker.diagnose.report.causes", lambda *_: (cause,))
    warned = diagnose([str(tmp_path)])
    (step,) = first_steps(warned.causes)
    assert step.kind is StepKind.LOOK
    assert "UNSAFE: server 3 can lead" in step.sentence
    assert data(warned)["explored"]["unsafe_leaders"] == (3,)
    assert answer.explored is None


def diagnose_fault(home: Path) -> Diagnosis:
    """The diagnosis of the same servers with a cause."""
    path = home / "1" / "data" / "version-2"
    epochs.save_current(path, 5)
    answer = diagnose([str(home)])
    epochs.save_current(path, 1)
    return answer


def test_nothing_is_claimed_of_a_state_that_is_not_known(tmp_path: Path) -> None:
    whole = three(tmp_path, 5, 5, 3)
    flip_last_record(tmp_path / "3")
    assert "is damaged" in of(diagnose([str(tmp_path)]), start(1, 2, 3)).missing
    (tmp_path / "2" / "data" / "version-2" / "currentEpoch").unlink()
    assert "epochs of server 2 are not known" in of(diagnose([str(tmp_path)]), start(1, 2)).missing
    partial = diagnose([str(tmp_path / "1"), str(tmp_path / "2" / "zoo.cfg")])
    assert "the servers do not agree" in of(partial, start(1)).missing or "not given" in of(partial, start(1)).missing
    recover = NextStep(StepKind.RECOVER, (1, 2), "")
    assert "makes new disks" in of(whole, recover, start(1)).missing
    assert explored(whole.situation, whole.doubts, (recover,)) is None


def test_servers_that_serve_start_first(tmp_path: Path) -> None:
    """Servers 1 and 2 serve. If 2 alone gets an empty disk, 1 and 3 have the write. If 1 stops as well, 3 wins."""
    answer = three(tmp_path, 5, 5, 3)
    lines = ("server.1=a:2888:3888", "server.2=b:2888:3888", "server.3=c:2888:3888")
    live = {
        sid: LiveServer(f"h{sid}:2181", sid, {}, lines, mode, "3.9.5") for sid, mode in ((1, "leader"), (2, "follower"))
    }
    situation = Situation(tuple(replace(one, live=live.get(one.sid or 0)) for one in answer.situation.servers))
    erase, stop = NextStep(StepKind.ERASE, (2,), ""), NextStep(StepKind.STOP, (1,), "")
    safe = explored(situation, doubts(situation), (start(3), erase, start(2)))
    assert safe is not None
    assert (safe.missing, safe.unsafe_leaders, safe.is_whole, safe.served) == ("", (), True, True)
    lost = explored(situation, doubts(situation), (stop, erase, start(2, 3)))
    assert lost is not None
    assert lost.unsafe_leaders == (3,)


@pytest.mark.parametrize("seed", range(12))
def test_the_specification_loses_what_the_rules_of_doubt_call_lost(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random disks of one history: an election drops an answered write where `doubt` says so, and nowhere else.

    `doubt` compares quorums and votes, and the exploration runs the specification; each server starts at any moment.
    """
    monkeypatch.setattr("checker.diagnose.explored.MOST_STATES", 400)
    monkeypatch.setattr("checker.diagnose.report.explored", lambda *_: None)
    choice = Random(seed)
    ones, twos = choice.randint(1, 4), choice.randint(0, 3)
    for sid in (1, 2, 3):
        length = choice.randint(1, ones + twos)
        write_server(tmp_path / str(sid), sid, range(1, min(length, ones) + 1), range(1, length - ones + 1))
        directory = tmp_path / str(sid) / "data" / "version-2"
        current = max(1 + (length > ones), choice.randint(1, 3))
        epochs.save_accepted(directory, max(current, choice.randint(1, 3)))
        epochs.save_current(directory, current)
    answer = diagnose([str(tmp_path)])
    is_lost = any(group.fate is WriteFate.LOST for group in answer.doubts.groups)
    assert bool(of(answer, start(1)).unsafe_leaders) == is_lost
