"""The wheel is complete: every package and data file, nothing else; and it works without a checkout."""

import configparser
import os
import re
import subprocess
import sys
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
PACKAGES = ("benchmarks", "checker", "harness", "refimpl", "simulation", "spec")
PROGRAM = """
import benchmarks, checker, harness, refimpl, simulation, spec
from checker.engine import plain, search
from checker.models.small_election import election

for package in (benchmarks, checker, harness, refimpl, simulation, spec):
    print(package.__file__)
print(search.__file__)
for engine in (plain, search):
    result = engine.explore(election(2))
    print(result.states, result.transitions, result.stop.value)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return Path(built)


@pytest.fixture(scope="module")
def held(wheel: Path) -> dict[str, bytes]:
    """Return the files of the wheel by their paths, without its own metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: archive.read(name) for name in names}


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed wheel, and nothing else."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", str(folder), str(wheel)], check=True)
    return folder


def files_under(folder: Path) -> dict[str, bytes]:
    """Return the files of the checkout under a folder, except Python's cache files."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_it_holds_the_packages_and_nothing_beside_them(held: dict[str, bytes]) -> None:
    assert sorted({name.partition("/")[0] for name in held}) == list(PACKAGES)
    assert {f"{package}/__init__.py" for package in PACKAGES} <= held.keys()


def test_it_holds_no_tests(held: dict[str, bytes]) -> None:
    named = [name for name in held if Path(name).name.startswith("test_") or "tests" in Path(name).parts]
    assert named == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_and_type_marker_of_a_package_is_in_it(held: dict[str, bytes], package: str) -> None:
    modules = {
        name: content for name, content in files_under(ROOT / package).items() if name.endswith((".py", "py.typed"))
    }
    assert {name: held.get(name) for name in modules} == modules


@pytest.mark.parametrize("folder", ["spec/scenarios", "harness", "benchmarks"])
def test_every_file_of_a_folder_is_in_it_as_it_stands_in_the_checkout(held: dict[str, bytes], folder: str) -> None:
    files = files_under(ROOT / folder)
    assert {name: held.get(name) for name in files} == files
    assert {name for name in held if name.startswith(f"{folder}/")} == files.keys()


def test_every_package_has_a_type_marker(held: dict[str, bytes]) -> None:
    assert [package for package in PACKAGES if f"{package}/py.typed" not in held] == []


def test_its_script_is_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
        points = configparser.ConfigParser()
        points.read_string(archive.read(name).decode())
    assert dict(points["console_scripts"]) == {"quorate": "checker.cli.quorate:main"}


def test_its_metadata_names_the_distribution_and_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(name).decode())
    assert metadata["Name"] == "zk-quorate"
    needed = {
        re.split("[^A-Za-z0-9-]", line)[0] for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line
    }
    assert {"msgspec", "numba", "numpy", "pyyaml", "z3-solver"} <= needed


def test_it_holds_the_licence_that_its_metadata_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = {name.partition(".dist-info/")[2]: archive.read(name) for name in archive.namelist()}
    metadata = message_from_string(files["METADATA"].decode())
    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    assert files["licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_it_explores_a_model_from_another_folder(installed: Path, tmp_path: Path) -> None:
    """PYTHONPATH precedes a checkout that is installed as well; the printed paths identify the copy."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed), "NUMBA_CACHE_DIR": str(tmp_path / "numba")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    *paths, by_plain, by_tables = ran.stdout.splitlines()
    assert [Path(path).is_relative_to(installed) for path in paths] == [True] * (len(PACKAGES) + 1)
    assert by_plain == by_tables == "13 17 exhausted"
