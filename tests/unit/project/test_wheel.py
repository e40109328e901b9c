"""The wheel is complete: every package and data file, nothing else; and it works without a checkout."""

import configparser
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from spec import packages

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
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
    assert dict(points["console_scripts"]) == {"quorate": "checker.cli.quorate:run_program"}


def test_its_metadata_names_the_distribution_and_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(name).decode())
    assert metadata["Name"] == "zk-quorate"
    needed = {
        re.split("[^A-Za-z0-9-]", line)[0] for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line
    }
    assert {"msgspec", "numpy", "pyyaml"} <= needed
    assert not needed & {"numba", "z3-solver", "kazoo", "ray", "matplotlib"}


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


HIDDEN = ("numba", "llvmlite", "z3", "kazoo", "ray", "matplotlib", "uvloop")
"""What the wheel does not install: its commands must do without."""
HIDE = f"""
import sys

class Rest:
    def __init__(self, finders):
        self.finders = finders

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HIDDEN}:
            return None
        specs = (finder.find_spec(name, path, target) for finder in self.finders)
        return next((spec for spec in specs if spec is not None), None)

sys.meta_path[:] = [Rest(tuple(sys.meta_path))]
"""


def command(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the wheel elsewhere, with an empty home and without what the wheel does not install."""
    program = f"{HIDE}\nfrom checker.cli.quorate import main\nsys.exit(main())"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "QUORATE_"))}
    environment |= {"PYTHONPATH": str(installed), "HOME": str(folder), "NUMBA_CACHE_DIR": str(folder / "numba")}
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip


def test_its_command_lists_the_commands_and_the_scenarios(installed: Path, tmp_path: Path) -> None:
    helped, listed = command(installed, tmp_path, "--help"), command(installed, tmp_path, "list")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "  rollout " in helped.stdout
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "r10-leader-last" in listed.stdout


def test_its_command_answers_about_quorums_without_a_solver(installed: Path, tmp_path: Path) -> None:
    files = [str(ROOT / "spec" / "scenarios" / "rollouts" / name / "zoo.cfg") for name in ("three", "five")]
    answer = command(installed, tmp_path, "quorums", *files)
    assert (answer.returncode, answer.stderr) == (12, "")


def test_its_command_names_the_package_that_the_proofs_need(installed: Path, tmp_path: Path) -> None:
    answer = command(installed, tmp_path, "proofs")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert (
        answer.stderr
        == "error: this command needs z3-solver, which is not installed: pip install 'cvc5>=1.2' 'z3-solver>=4.13'\n"
    )


def test_its_planner_judges_the_order_of_the_readme_without_a_solver(installed: Path, tmp_path: Path) -> None:
    folders = [str(ROOT / "spec" / "scenarios" / "rollouts" / name) for name in ("three", "five")]
    answer = command(
        installed, tmp_path, "rollout", "--from", folders[0], "--to", folders[1],
        "--leader", "2", "--order", "4,5,2,1,3", "--in-one-go", "--how", "one-by-one",
    )  # fmt: skip
    assert answer.returncode == 12, answer.stderr
    assert answer.stdout.startswith("# Do not use this order: two leaders")


def test_its_planner_answers_without_kernels(installed: Path, tmp_path: Path) -> None:
    """The order is proved, and the runs about it are small. A larger run, about another way, is not finished."""
    folders = [str(ROOT / "spec" / "scenarios" / "rollouts" / name) for name in ("three", "five")]
    answer = command(installed, tmp_path, "rollout", "--from", folders[0], "--to", folders[1])
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("# Add servers 4 and 5 in one go: start 4, then restart 1, 2 and 3")
    assert "a larger run needs numba, which is not installed: pip install 'numba" in answer.stdout


def test_a_search_names_the_package_that_its_kernels_need(installed: Path, tmp_path: Path) -> None:
    answer = command(installed, tmp_path, "nodes", "--nodes", "2", "--depth", "3")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("error: this command needs numba, which is not installed: pip install 'numba")


def test_its_demo_serves(installed: Path, tmp_path: Path) -> None:
    program = f"{HIDE}\nfrom checker.cli.quorate import main\nsys.exit(main())"
    environment = os.environ | {"PYTHONPATH": str(installed), "HOME": str(tmp_path)}
    line = [sys.executable, "-c", program, "demo", "--servers", "1"]
    with subprocess.Popen(line, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            assert demo.stdout.readline().startswith("connect to 127.0.0.1:")
            assert demo.stdout.readline().endswith(": standalone\n")
        finally:
            demo.terminate()


NODE = ROOT / "packaging" / "node"


def test_the_wheel_of_the_node_holds_two_packages_and_needs_no_engine(held: dict[str, bytes], tmp_path: Path) -> None:
    (built,) = WheelBuilder(str(NODE)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert {name: archive.read(name) for name in names} == {
            name: content for name, content in held.items() if name.startswith(("spec/", "refimpl/"))
        }
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(name).decode())
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())
    assert metadata["Name"] == packages.NODE
    assert metadata["Version"] == PROJECT["version"]
    assert [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line] == [
        line for line in sorted(PROJECT["dependencies"]) if line.startswith(("h11", "msgspec"))
    ]


def test_the_wheel_built_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    (sdist,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    (built,) = WheelBuilder(str(unpacked)).build(directory=str(tmp_path / "again"), versions=["standard"])
    assert Path(built).read_bytes() == wheel.read_bytes()
