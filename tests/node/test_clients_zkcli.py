"""zkCli.sh, unchanged: the same script prints the same at the real server and at ours."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.ensemble import Ensemble
from tests.node.patience import PATIENT
from tests.support.programs import need_files

ZKCLI = Path("/usr/share/zookeeper/bin/zkCli.sh")
SECONDS = 180.0

SCRIPTS = {path.stem: path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "zkcli").iterdir()}

# The allowed differences between servers: times, session ids, addresses, and the order of sets.
TIME = re.compile(r"^(ctime|mtime) = .*$")
OWNER = re.compile(r"^ephemeralOwner = 0x(?!0$)[0-9a-f]+$")
SET = re.compile(r"^\[(/.*)\]$")
PROMPT = re.compile(r"^\[zk: [^]]*\] ?")


def outputs(ensemble: Ensemble, script: str) -> tuple[list[str], list[str]]:
    """Return the output of the commands, and the watch events, which another thread of the client prints in between."""
    done = subprocess.run(
        [ZKCLI, "-waitforconnection", "-timeout", "30000", "-server", ensemble.address(1)],
        input=script.strip() + "\nquit\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    printed, events = [], []
    for line in (done.stdout + done.stderr).splitlines():
        bare = PROMPT.sub("", line)
        if line.startswith("Connecting to "):
            continue
        if bare.startswith("WatchedEvent") and "state:Closed" in bare:
            continue  # whether the client prints its own closing before its process ends is a race
        if bare.startswith("WatchedEvent"):
            events.append(bare)
        elif bare not in {"", "WATCHER::"}:
            printed.append(comparable(bare))
    return printed, events


def comparable(line: str) -> str:
    """Return a line without the allowed differences."""
    if match := SET.match(line):
        return f"[{', '.join(sorted(match[1].split(', ')))}]"
    return OWNER.sub("ephemeralOwner = <session>", TIME.sub(r"\1 = <time>", line))


@pytest.fixture
def printed(launch: Callable[..., Ensemble]) -> Callable[[str, str], tuple[list[str], list[str]]]:
    """A function that returns the output of a script at a new server of a kind, so that zxids are equal too."""
    need_files(ZKCLI, remedy="apt-get install zookeeper")

    def run(kind: str, script: str) -> tuple[list[str], list[str]]:
        with launch([kind], **PATIENT) as ensemble:
            return outputs(ensemble, script)

    return run


@pytest.mark.parametrize("name", ["basics", "acls", "watches"])
def test_zkcli_prints_the_same_at_a_real_server_and_at_ours(
    printed: Callable[[str, str], tuple[list[str], list[str]]], name: str
) -> None:
    real = printed("real", SCRIPTS[name])
    # The client reached the server and the script ran: its last command is answered.
    assert len(real[0]) > 20
    assert printed("node", SCRIPTS[name]) == real


def test_zkcli_prints_the_same_quotas_and_usage_at_both(
    printed: Callable[[str, str], tuple[list[str], list[str]]],
) -> None:
    real, node = (printed(kind, SCRIPTS["quotas"])[0] for kind in ("real", "node"))
    assert any("Output stat for" in line for line in real)
    assert node == real
