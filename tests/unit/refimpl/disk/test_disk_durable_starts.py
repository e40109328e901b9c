"""What a server has read when it starts remains after a failure of the power, wherever its last process was killed.

A killed process leaves names and contents that are visible and not durable. A server that starts with them answers for
them: it votes with its last zxid, and keeps to its epoch. The disk is simulated, so that every moment is tried.
"""

from pathlib import Path
from typing import Any

import pytest

from refimpl.disk import epochs
from refimpl.disk.files import make_directories
from refimpl.disk.txnlog import TxnLog
from simulation.world.loop import PowerOff, SimulatedLoop
from simulation.world.machine import Machine
from simulation.world.network import Network
from simulation.world.paths import SimulatedPath
from tests.unit.refimpl.disk.test_disk_txnlog import payload

DATA = SimulatedPath("/data")
SEEDS = range(12)


class Stage:
    """One machine, on which pieces of code run as processes."""

    def __init__(self, seed: int) -> None:
        loop = SimulatedLoop(str(seed))  # type: ignore[abstract]
        self.machine = Machine(loop, Network(loop, str(seed)), "10.0.0.1", str(seed))

    def run(self, work: Any) -> Any:
        """Run code in a new process; None if it is killed."""
        process = self.machine.boot("process")
        try:
            return process.context.run(work)
        except PowerOff:
            return None

    def kill_at(self, operation: int) -> None:
        self.machine.die_at = (self.machine.disk.operations + operation, False)

    def end(self, *, power: bool) -> None:
        self.machine.crash(power)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_folders_of_a_new_server_remain(seed: int) -> None:
    stage = Stage(seed)
    stage.run(lambda: make_directories(DATA, DATA))
    stage.end(power=True)
    assert stage.run((DATA / "version-2").is_dir)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("preallocation", [0, 4096])
def test_the_records_that_a_start_has_found_remain(seed: int, preallocation: int) -> None:
    def write() -> None:
        DATA.mkdir()
        log = TxnLog(DATA, preallocation)
        for zxid in (1, 2, 3):
            log.append(zxid, payload(zxid))
            log.commit()

    for operation in range(1, 20):
        stage = Stage(seed)
        stage.kill_at(operation)
        stage.run(write)
        stage.end(power=False)
        if not stage.run(DATA.is_dir):
            continue
        stage.machine.disk.root.sync(stage.machine.disk.root.done)
        found = stage.run(lambda: TxnLog(DATA, preallocation).last_zxid)
        stage.end(power=True)
        assert stage.run(lambda: TxnLog(DATA, preallocation).last_zxid) == found, f"killed at operation {operation}"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_epoch_that_a_start_has_found_remains(seed: int) -> None:
    def start() -> Path:
        directory, _ = make_directories(DATA, DATA)
        return directory

    for operation in range(1, 12):
        stage = Stage(seed)
        stage.run(lambda: (epochs.save_accepted(start(), 1), epochs.save_current(start(), 1)))
        stage.kill_at(operation)
        stage.run(lambda: epochs.save_accepted(start(), 2))
        stage.end(power=False)
        found = stage.run(lambda: epochs.load(start(), 0).accepted)
        stage.end(power=True)
        assert stage.run(lambda: epochs.load(start(), 0).accepted) == found, f"killed at operation {operation}"
