"""No message and no page names a distribution that is not ours; a missing package is named with the way to install it.

The name `quorate` belongs to another project on the package index, so `pip install quorate` would run its code.
"""

import re
import subprocess
import tomllib
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from spec.packages import DISTRIBUTION, EXTRAS, needed
from tests.support.command_line import cli

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOREIGN = re.compile(
    r"""(?<![\w-])quorate\[|(?:pip|pipx|uv|uvx)\s+(?:(?:tool\s+)?(?:install|run)\s+)?(?:-\S+\s+)*["']?quorate(?![\w/.-])"""
)
"""What would install the distribution `quorate`: an extra of it, or its name after a program that installs."""


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_distribution_that_is_not_ours() -> None:
    named = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        named += [f"{path.relative_to(ROOT)}: {found[0]}" for found in FOREIGN.finditer(text) if path != Path(__file__)]
    assert named == []


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("pip install 'quorate[plots]'", True),
        ("pip install\n  quorate", True),
        ("pip install --upgrade quorate", True),
        ("uvx quorate rollout", True),
        ("pipx run quorate", True),
        ("uvx --from zk_quorate-0.1.0-py3-none-any.whl quorate --help", False),
        ("pip install zk-quorate", False),
        ("/opt/quorate/bin/pip install quorate-node.whl", False),
        ('pip install --quiet "$GITHUB_ACTION_PATH"', False),
    ],
)
def test_the_pattern_knows_the_one_from_the_other(text: str, foreign: bool) -> None:
    assert bool(FOREIGN.search(text)) == foreign


def test_the_extras_are_those_of_the_project() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    extras = {name: tuple(needs) for name, needs in PROJECT["optional-dependencies"].items()}
    assert {name: needs for name, needs in extras.items() if name not in ("test", "site")} == EXTRAS


def test_the_citation_is_that_of_the_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (str(cited["version"]), cited["license"]) == (PROJECT["version"], PROJECT["license"])


def test_the_tests_need_every_extra() -> None:
    assert {need for needs in EXTRAS.values() for need in needs} <= {*PROJECT["optional-dependencies"]["test"]}


@pytest.mark.parametrize("module", ["ray", "matplotlib.figure", "kazoo.client"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(module: str) -> None:
    package = module.partition(".")[0]
    assert re.fullmatch(
        rf"a plot needs {package}, which is not installed: pip install '{package}>=[0-9.]+'",
        needed(module, "a plot") or "",
    )


def test_a_module_of_nobody_is_an_error_of_the_program() -> None:
    assert needed("checker.nosuch") is None
    assert needed(None) is None


def test_a_command_whose_package_is_missing_says_so_in_one_line(tmp_path: Path) -> None:
    with patch("checker.command.find_spec", return_value=None):
        ended = cli("swarm", "absent.yaml", "--plot", tmp_path / "x.svg")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"error: --plot {tmp_path / 'x.svg'}: this command needs matplotlib, which is not installed: "
        "pip install 'matplotlib>=3.8'\n"
    )
