"""The quickstart of the page about nodes, run literally: four lines start and use three nodes, and one stops them.

Only its first line is left out. It installs the package, which the gate does with the README's other lines; instead
there is a `.venv/bin/python` that is the interpreter of these tests.
"""

import re
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL = "python3 -m venv .venv && .venv/bin/pip install --quiet '.[recipes]'"
SECONDS = 100
"""The time limit of the whole test in seconds; the lines have shorter limits."""
ALWAYS_STOP = 'trap \'[ -z "${demo-}" ] || kill "$demo" 2>/dev/null || true; wait\' EXIT'
"""In any failure, the started processes are stopped, by their id."""


def quickstart() -> tuple[list[str], str]:
    """Return the lines that start and use an ensemble, and the one that stops it."""
    page = (ROOT / "docs" / "how-to-run-a-node.md").read_text("utf-8")
    section = page.split("\n## Quickstart\n")[1].split("\n## ")[0]
    start, stop = re.findall(r"^```bash\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return start.splitlines(), stop.strip()


def test_it_begins_with_an_installation_that_brings_the_client() -> None:
    lines, _ = quickstart()
    assert (len(lines), lines[0]) == (4, INSTALL)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert any(each.startswith("kazoo") for each in extras["recipes"])


def test_a_client_talks_to_three_nodes_and_nothing_is_left_behind(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    environment = f"PYTHONPATH={shlex.quote(str(ROOT))} TMPDIR={shlex.quote(str(tmp_path))}"
    python.write_text(f'#!/bin/sh\n{environment} exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    lines, stop = quickstart()
    script = "\n".join([ALWAYS_STOP, *lines[1:], 'echo "$hosts"', stop, 'ls -d "$out" || true'])

    command = ["timeout", str(SECONDS), "bash", "-uo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    leads, read, hosts = done.stdout.splitlines()
    assert re.fullmatch(r"server [123] at 127\.0\.0\.1:\d+: leader", leads), done
    assert read == "b'world'", done
    assert len(hosts.split(",")) == 3, done
    for host in hosts.split(","):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), timeout=5)
    assert [path.name for path in tmp_path.iterdir()] == [".venv"]
