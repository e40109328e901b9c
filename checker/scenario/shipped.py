"""The scenarios that come with the package: `spec/scenarios`, in the folder where the package is installed.

Rules of this module: a shipped scenario is a YAML file in a folder of `spec/scenarios`, next to the zoo.cfg files that
it names; the folders and files are data, and the code does not contain their names.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

FOLDER = "scenarios"


def bundled() -> list[Path]:
    """The paths of all shipped scenarios, in the order of their folders and names."""
    folder = Path(str(files("spec"))) / FOLDER
    return sorted(folder.glob("*/*.yaml"))
