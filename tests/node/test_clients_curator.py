"""Curator, unchanged, with its recipes: one Java program prints the same at real servers and at ours."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.ensemble import Ensemble
from tests.node.patience import PATIENT
from tests.support.programs import need_files

JARS = Path("/usr/share/java")
CLASS_PATH = [JARS / name for name in ("curator-recipes.jar", "zookeeper.jar", "slf4j-nop.jar")]
INSTALL = "apt-get install libcurator-recipes-java default-jdk-headless"
SECONDS = 120.0

PROGRAMS = Path(__file__).parent / "curator"

# `Recipes` prints a line for each recipe that behaves as Curator documents; an error ends it with its stack trace.
DONE = [
    "mutex",
    "read-write lock",
    "leader latch",
    "leader selector",
    "cache",
    "node cache",
    "transactions",
    "atomic long",
    "barrier",
    "persistent node",
    "modes",
]


def compiled(name: str, tmp_path_factory: pytest.TempPathFactory, *options: str) -> list[str]:
    """Return the command that runs the program of that name; its own arguments follow."""
    need_files(*CLASS_PATH, remedy=INSTALL)
    home = tmp_path_factory.mktemp("curator")
    class_path = ":".join(map(str, CLASS_PATH))
    javac = [shutil.which("javac"), "-nowarn", "-cp", class_path, "-d", str(home), str(PROGRAMS / f"{name}.java")]
    done = subprocess.run(javac, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return [str(shutil.which("java")), "-XX:+UseSerialGC", *options, "-cp", f"{home}:{class_path}", name]


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the compiled program; the clients' servers follow."""
    return compiled("Recipes", tmp_path_factory, "-Xmx128m")


@pytest.mark.parametrize("kind", ["real", "node"])
def test_curators_recipes_work(launch: Callable[..., Ensemble], recipes: list[str], kind: str) -> None:
    ensemble = launch([kind] * 3, **PATIENT)
    command = [*recipes, ensemble.address(1), ensemble.address(2)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout.splitlines() == DONE, done.stderr
    assert done.returncode == 0, done.stderr
