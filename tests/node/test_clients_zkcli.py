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

BASICS = """
create /a one
create /a/b two
create -s /a/s- sequential
create -e /a/e ephemeral
create -s -e /a/se- both
create -c /container
create -t 1000000 /ttl lasting
create /a again
create /missing/child
create /nodata
get /a
get -s /a
get /nodata
set /a changed
set -s -v 1 /a more
set -v 7 /a never
get /missing
ls /
ls -s /a
ls -R /
ls /missing
stat /a
stat /a/e
stat /container
stat /ttl
stat /missing
getAllChildrenNumber /
getEphemerals
getEphemerals /a
sync /
delete /a
delete -v 5 /a/b
delete -v 0 /a/b
delete /missing
deleteall /a
ls -R /
"""

ACLS = """
whoami
create /open x
getAcl /open
getAcl -s /open
addauth digest anna:secret
create /mine x auth::cdrwa
getAcl /mine
create /read x world:anyone:r
set /read y
getAcl /read
setAcl /open ip:127.0.0.1:cdrwa
getAcl /open
setAcl -v 5 /open world:anyone:cdrwa
setAcl -s -v 1 /open world:anyone:cdrwa
setAcl /open digest:bert:nohash:r
setAcl /open nosuch:scheme:r
setAcl -R /open auth::rwa
getAcl /open
set /open changed
create /open/child
delete /open
get /open
"""

QUOTAS = """
create /limited x
setquota -n 5 /limited
listquota /limited
setquota -b 100 /limited
listquota /limited
ls -R /zookeeper
delquota /limited
ls -R /zookeeper
"""

WATCHES = """
create /w x
get -w /w
set /w y
ls -w /w
create /w/c
stat -w /missing
create /missing
addWatch -m PERSISTENT /w
set /w z
create /w/d
addWatch -m PERSISTENT_RECURSIVE /deep
create /deep
create /deep/a
create /deep/a/b
set /deep/a/b x
delete /deep/a/b
removewatches /w
set /w once-more
sync /
sync /
sync /
"""

SCRIPTS = {"basics": BASICS, "acls": ACLS, "quotas": QUOTAS, "watches": WATCHES}

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
    real, node = (printed(kind, QUOTAS)[0] for kind in ("real", "node"))
    assert any("Output stat for" in line for line in real)
    assert node == real
