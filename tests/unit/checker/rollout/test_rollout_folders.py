"""Folders of zoo.cfg files in the layouts of operators: every layout is read, and every error names its place."""

from pathlib import Path

from checker.rollout.config_state import side_of
from checker.rollout.inputs.folders import Folder, read_folder
from tests.support.reconfig_folders import dynamic_folder

HEAD = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper\nclientPort=2181\n"


def cfg(*sids: int, observers: tuple[int, ...] = (), extra: str = "") -> str:
    """Return a zoo.cfg with five lines before that of the first server."""
    lines = [f"server.{sid}=zoo{sid}:2888:3888{':observer' if sid in observers else ''}\n" for sid in sids]
    return HEAD + "".join(lines) + extra


def put(folder: Path, files: dict[str, str]) -> Path:
    """Write files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_a_dynamic_file_lies_beside_and_brings_its_version(tmp_path: Path) -> None:
    static = (
        HEAD.replace("clientPort=2181\n", "") + "reconfigEnabled=true\ndynamicConfigFile=/etc/zk/zoo.cfg.dynamic.1a\n"
    )
    put(tmp_path, {"zoo.cfg": static, "zoo.cfg.dynamic.1a": "server.1=a:2888:3888;2181\nserver.2=b:2888:3888;2181\n"})
    folder = read_folder(tmp_path)
    assert folder.view.version == 0x1A
    side = side_of(folder, "before")
    assert side.files == {1: "before.cfg", 2: "before.cfg"}
    assert "dynamicConfigFile=before.cfg.dynamic.1a\n" in side.texts["before.cfg"]
    assert side.texts["before.cfg.dynamic.1a"].startswith("server.1=a")


def test_files_that_differ_in_nothing_but_their_ports_are_one_state(tmp_path: Path) -> None:
    folder: Folder = read_folder(
        put(tmp_path, {"1/zoo.cfg": cfg(1, 2), "2/zoo.cfg": cfg(1, 2).replace("2181", "2182")})
    )
    assert side_of(folder, "after").files == {1: "after-1.cfg", 2: "after-2.cfg"}


def test_servers_with_and_without_reconfig_enabled_are_read_together(tmp_path: Path) -> None:
    """Such ensembles occur: the planner names the servers, and the reader does not refuse them."""
    folder = dynamic_folder(tmp_path / "mixed", (1, 2, 3), disabled=(1,))
    assert [each.config.reconfig_enabled for each in folder.servers.values()] == [False, True, True]
