"""The recipes of docs/how-to-deploy-a-node.md, as far as they can be tried without Docker and without root."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from refimpl.process import read_settings
from spec.config import Address

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples" / "node"
DOCKERFILE = (EXAMPLES / "Dockerfile").read_text()
NEEDED = {"msgspec", "h11", "uvloop"}


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    analyze = str(shutil.which("systemd-analyze"))
    unit = tmp_path / "quorate.service"
    unit.write_text((EXAMPLES / "quorate.service").read_text().replace("/opt/quorate/bin/python", sys.executable))
    ended = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")


def test_the_file_of_the_image_is_that_of_a_server_that_can_be_reached(tmp_path: Path) -> None:
    settings = read_settings(EXAMPLES / "zoo.cfg")
    assert settings.clients.address == Address("0.0.0.0", 2181)
    assert settings.admin.metrics == Address("0.0.0.0", 7000)
    assert settings.admin.admin == Address("127.0.0.1", 8080)


def test_the_image_installs_what_the_node_imports() -> None:
    """A fresh interpreter loads every module of a server; nothing else of the project's dependencies is loaded."""
    code = "import refimpl.__main__, refimpl.process, refimpl.admin.ports, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    tops = {name.partition(".")[0] for name in loaded.stdout.split()}
    others = {"numba", "numpy", "z3", "yaml", "rich", "psutil", "markdown_it"}
    assert not tops & others
    assert '"/source/packaging/node[fast]"' in DOCKERFILE
    project = tomllib.loads((ROOT / "packaging" / "node" / "pyproject.toml").read_text("utf-8"))["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["fast"]]
    assert {re.split("[^a-z0-9]", need)[0] for need in needs} == NEEDED


def test_the_image_runs_without_privileges_and_exposes_the_ports() -> None:
    lines = DOCKERFILE.splitlines()
    assert "USER 1000" in lines
    assert lines.index("USER 1000") < next(at for at, line in enumerate(lines) if line.startswith("ENTRYPOINT"))
    assert "EXPOSE 2181 2888 3888 7000 8080" in lines
    assert not re.search(r"^FROM \S+:latest|^FROM [^:\s]+( |$)|^ADD ", DOCKERFILE, re.MULTILINE)
