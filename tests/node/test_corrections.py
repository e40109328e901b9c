"""Corrections of released servers: the agent, and the schedules that lose a write without it.

The agent knows classes of 3.9.5 alone, so Debian's 3.8.0 is a release in which it must correct nothing. The slow tests
execute the shipped counterexamples with their corrections; `python -m research.corrections` repeats them.
"""

import subprocess
from pathlib import Path

import pytest

from harness import real, releases
from harness.corrections.agent import java_options
from harness.corrections.choice import CORRECTIONS
from harness.processes import ServerError
from harness.releases import DEBIAN
from harness.reproduce.disks import logged_zxids, write_disk
from harness.reproduce.driver import reproduce
from harness.reproduce.ends import Outcome
from harness.reproduce.gates import compile_shim
from harness.reproduce.schedule import load_schedule, with_corrections, with_losses
from research.corrections import DEFECTS
from spec.durable import Durable
from spec.txn import Txn, make_zxid
from tests.support.programs import need

SCENARIOS = Path(__file__).parents[2] / "spec" / "scenarios"
LOSSES = [
    "known-defects/acks-survive-truncation",
    "known-defects/sync-from-applied",
    "known-defects/trunc-after-snap",
    "r4-observers/r4-observer-promoted-loses-a-write",
]


@pytest.fixture(autouse=True)
def _asm() -> None:
    need(releases.ASM.missing())


ALL = [defect.name for defect in DEFECTS]
"""Every correction, as the program that tries them all has it."""


def test_all_corrections_are_made_together(tmp_path: Path) -> None:
    (option,) = java_options(ALL, "3.9.5", tmp_path)
    assert option == f"-javaagent:{tmp_path}/agent.jar={','.join(ALL)}"


def test_the_agent_names_all_corrections(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="no correction is called 'nothing'; known are ") as error:
        java_options(["nothing"], "3.9.5", tmp_path)
    assert str(error.value).partition("known are ")[2].split(", ") == sorted(ALL)
    assert sorted(CORRECTIONS) == sorted(ALL)


def test_a_class_that_was_not_tried_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ServerError, match=r"3.8.0 cannot be corrected: [a-z/]*FileTxnLog is not the class of a release"
    ):
        java_options(["trunc-after-snap"], DEBIAN, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_a_corrected_server_does_what_the_corrected_model_does(name: str, tmp_path: Path) -> None:
    schedule = with_losses(with_corrections(load_schedule(SCENARIOS / f"{name}.yaml")))
    agent = java_options(schedule.corrections, "3.9.5", tmp_path)
    (servers := tmp_path / "servers").mkdir()
    result = reproduce(schedule, servers, "3.9.5", compile_shim(tmp_path), lambda _: None, java_options=agent)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert not result.effects


@pytest.mark.slow
def test_a_server_without_the_correction_is_not_taken_for_a_corrected_one(tmp_path: Path) -> None:
    """The model is corrected and the servers are not: the log of server 3 keeps 2:1 after TRUNC 1:1."""
    schedule = with_losses(with_corrections(load_schedule(SCENARIOS / "known-defects" / "trunc-after-snap.yaml")))
    (servers := tmp_path / "servers").mkdir()
    result = reproduce(schedule, servers, "3.9.5", compile_shim(tmp_path), lambda _: None)
    assert result.outcome is Outcome.NOT_CONFIRMED
    assert "the log of server 3 has [2:1], and the model has []" in result.reason


CUT = """
public class Cut {
    public static void main(String[] words) throws Exception {
        var log = new org.apache.zookeeper.server.persistence.FileTxnLog(new java.io.File(words[0]));
        log.truncate(Long.parseLong(words[1]));
        log.close();
    }
}
"""
LOG = (make_zxid(1, 1), make_zxid(1, 2), make_zxid(1, 3), make_zxid(2, 6))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "uncorrected"),
    [
        (make_zxid(2, 5), LOG),  # as docs/findings/trunc-after-snap.md has it
        (make_zxid(1, 2), LOG[:2]),
        (make_zxid(1, 0), LOG[:1]),
        (make_zxid(2, 6), LOG),
    ],
)
def test_a_corrected_log_has_the_records_up_to_the_zxid(
    last: int, uncorrected: tuple[int, ...], tmp_path: Path
) -> None:
    (tmp_path / "Cut.java").write_text(CUT)
    agent = java_options(["trunc-after-snap"], "3.9.5", tmp_path)
    for options, expected in (((), uncorrected), (agent, tuple(zxid for zxid in LOG if zxid <= last))):
        data = tmp_path / f"data-{len(options)}"
        write_disk(data, Durable(2, 2, 0, tuple(Txn(zxid, number) for number, zxid in enumerate(LOG))))
        command = [real.java(), *options, "-cp", real.class_path("3.9.5"), str(tmp_path / "Cut.java")]
        subprocess.run([*command, str(data / "version-2"), str(last)], check=True, capture_output=True, timeout=60)
        assert logged_zxids(data) == expected
