"""Folders of zoo.cfg files in the layouts of operators: every layout is read, and every error names its place."""

from pathlib import Path

import pytest

from checker.rollout.config_state import side_of
from checker.rollout.inputs.folders import Folder, read_folder
from spec.config import ConfigError
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


LAYOUTS = {
    "one file for all": {"zoo.cfg": cfg(1, 2)},
    "one file of any name": {"zookeeper-prod.cfg": cfg(1, 2)},
    "a folder by its number": {"1/zoo.cfg": cfg(1, 2), "2/zoo.cfg": cfg(1, 2)},
    "a folder by its name": {"server1/zoo.cfg": cfg(1, 2), "server2/zoo.cfg": cfg(1, 2)},
    "a myid beside it": {
        **{"berlin/zoo.cfg": cfg(1, 2), "berlin/myid": "1\n"},
        **{"paris/zoo.cfg": cfg(1, 2), "paris/myid": "2\n"},
    },
    "a myid in its data directory": {
        **{"a/zoo.cfg": cfg(1, 2).replace("/var/lib/zookeeper", "data"), "a/data/myid": "1"},
        **{"b/zoo.cfg": cfg(1, 2), "b/zookeeper/myid": "2"},
    },
    "pods of a StatefulSet, whose myid is the ordinal plus one": {
        **{"zookeeper-0/zoo.cfg": cfg(1, 2), "zookeeper-0/myid": "1\n"},
        **{"zookeeper-1/zoo.cfg": cfg(1, 2), "zookeeper-1/myid": "2\n"},
    },
    "pods with a myid in their data directories": {
        **{"zk-0/zoo.cfg": cfg(1, 2).replace("/var/lib/zookeeper", "/data"), "zk-0/data/myid": "1\n"},
        **{"zk-1/zoo.cfg": cfg(1, 2).replace("/var/lib/zookeeper", "/data"), "zk-1/data/myid": "2\n"},
    },
    "a file by its number": {"zoo-1.cfg": cfg(1, 2), "zoo-2.cfg": cfg(1, 2)},
    "a file that is a number": {"1.cfg": cfg(1, 2), "2.cfg": cfg(1, 2)},
}


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_each_server_its_file(tmp_path: Path, files: dict[str, str]) -> None:
    folder = read_folder(put(tmp_path, files))
    assert set(folder.servers) == {1, 2}
    assert {sid: given.config.myid for sid, given in folder.servers.items()} == {1: 1, 2: 2}
    assert folder.view.voters == {1, 2}
    assert folder.taken and all(str(tmp_path) in taken for taken in folder.taken)


def test_a_file_itself_is_taken_for_all_its_members(tmp_path: Path) -> None:
    put(tmp_path, {"zoo-3.cfg": cfg(1, 2, 3), "zoo-5.cfg": cfg(1, 2, 3, 4, 5)})
    assert set(read_folder(tmp_path / "zoo-5.cfg").servers) == {1, 2, 3, 4, 5}


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


POD = {"zoo.cfg": cfg(1, 2), "myid": "1\n"}
MISTAKES = {
    "nothing there": ({}, "the folder has no zoo.cfg"),
    "two layouts": ({"zoo.cfg": cfg(1, 2), "1/zoo.cfg": cfg(1, 2)}, "there are zoo.cfg and folders with a zoo.cfg (1)"),
    "a name without a number": ({"zoo-1.cfg": cfg(1, 2), "old.cfg": cfg(1, 2)}, "old.cfg: there are several files"),
    "no myid": ({"a/zoo.cfg": cfg(1, 2), "2/zoo.cfg": cfg(1, 2)}, "a: nothing says for which server this folder is"),
    "a myid that is none": ({"a/zoo.cfg": cfg(1, 2), "a/myid": "one"}, "a/myid:1: 'one' is not a number"),
    "contradictory ids": (
        {"1/zoo.cfg": cfg(1, 2).replace("/var/lib", "/data"), "1/myid": "2", "1/zookeeper/myid": "1"},
        "1: it is for server 2 (",
    ),
    "two pods with one id": (
        {
            **{"zookeeper-0/zoo.cfg": cfg(1, 2), "zookeeper-0/myid": "1"},
            **{"zookeeper-1/zoo.cfg": cfg(1, 2), "zookeeper-1/myid": "1"},
        },
        "zookeeper-0/zoo.cfg is for server 1 too (by ",
    ),
    "a pod without its myid": (
        {"zookeeper-0/zoo.cfg": cfg(1, 2), "zookeeper-1/zoo.cfg": cfg(1, 2)},
        "the id of a pod is usually its ordinal plus one: copy its myid into the folder",
    ),
    "two for one server": (
        {"1/zoo.cfg": cfg(1, 2), "b/zoo.cfg": cfg(1, 2), "b/myid": "1"},
        "1/zoo.cfg is for server 1 too",
    ),
    "not named by its own file": (
        {"1/zoo.cfg": cfg(1, 2), "3/zoo.cfg": cfg(1, 2)},
        "3/zoo.cfg: this is the file of server 3",
    ),
    "a member without a file": (
        {"1/zoo.cfg": cfg(1, 2, 3), "2/zoo.cfg": cfg(1, 2, 3)},
        "1/zoo.cfg:8: it names server 3, for which there is no file",
    ),
    "different members": ({"1/zoo.cfg": cfg(1, 2), "2/zoo.cfg": cfg(1, 2, 3)}, "2/zoo.cfg:8: it names server 3, and "),
    "different roles": (
        {"1/zoo.cfg": cfg(1, 2, 3), "2/zoo.cfg": cfg(1, 2, 3, observers=(3,)), "3/zoo.cfg": cfg(1, 2, 3)},
        "2/zoo.cfg:8: the role of server 3 is not the one that",
    ),
    "different weights": (
        {
            "1/zoo.cfg": cfg(1, 2, extra="group.1=1:2\nweight.1=1\nweight.2=1\n"),
            "2/zoo.cfg": cfg(1, 2, extra="group.1=1:2\nweight.1=1\nweight.2=5\n"),
        },
        "2/zoo.cfg: its groups or weights differ from those of",
    ),
    "a line that ZooKeeper refuses": (
        {"zoo.cfg": HEAD + "server.1=zoo1:2888\nserver.2=b:1:2\n"},
        "zoo.cfg:6: server.1: ",
    ),
    "no server": (
        {"zoo.cfg": HEAD},
        "zoo.cfg: it has no server.N line, so its server runs standalone, and nothing says which id",
    ),
}


@pytest.mark.parametrize(("files", "said"), MISTAKES.values(), ids=MISTAKES)
def test_every_mistake_is_named_with_its_place(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_folder(put(tmp_path, files))
    assert said in str(error.value)
    assert "; " in str(error.value)  # and the correction


def test_a_mistake_about_pods_is_one_error(tmp_path: Path) -> None:
    """Both folders name themselves server 1; neither the missing file of server 2 nor the names are errors as well."""
    pods = {f"zookeeper-{ordinal}/{name}": text for ordinal in (0, 1) for name, text in POD.items()}
    with pytest.raises(ConfigError) as error:
        read_folder(put(tmp_path, pods))
    assert len(error.value.problems) == 1


def test_a_myid_decides_over_the_name_of_the_folder(tmp_path: Path) -> None:
    """This is as on the server: `QuorumPeerConfig.setupMyId` reads the id from the file."""
    swapped = {"server1/zoo.cfg": cfg(1, 2), "server1/myid": "2", "server2/zoo.cfg": cfg(1, 2), "server2/myid": "1"}
    folder = read_folder(put(tmp_path, swapped))
    assert {sid: Path(given.origin).parent.name for sid, given in folder.servers.items()} == {
        1: "server2",
        2: "server1",
    }


def test_no_folder_is_a_mistake_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the folder does not exist"):
        read_folder(tmp_path / "nowhere")


def test_files_that_differ_in_nothing_but_their_ports_are_one_state(tmp_path: Path) -> None:
    folder: Folder = read_folder(
        put(tmp_path, {"1/zoo.cfg": cfg(1, 2), "2/zoo.cfg": cfg(1, 2).replace("2181", "2182")})
    )
    assert side_of(folder, "after").files == {1: "after-1.cfg", 2: "after-2.cfg"}


def test_servers_with_and_without_reconfig_enabled_are_read_together(tmp_path: Path) -> None:
    """Such ensembles occur: the planner names the servers, and the reader does not refuse them."""
    folder = dynamic_folder(tmp_path / "mixed", (1, 2, 3), disabled=(1,))
    assert [each.config.reconfig_enabled for each in folder.servers.values()] == [False, True, True]


def test_servers_with_reconfig_enabled_and_other_versions_are_one_clear_error(tmp_path: Path) -> None:
    """Server 1 has no version, so server 3 is compared with server 2."""
    dynamic_folder(tmp_path / "mixed", (1, 2, 3), disabled=(1,))
    for sid, version in ((2, "100000000"), (3, "200000000")):
        own = tmp_path / "mixed" / str(sid)
        (own / "zoo.cfg.dynamic").rename(own / f"zoo.cfg.dynamic.{version}")
        (own / "zoo.cfg").write_text((own / "zoo.cfg").read_text() + f"dynamicConfigFile=zoo.cfg.dynamic.{version}\n")
    with pytest.raises(ConfigError, match=r"3/zoo\.cfg: the version of its dynamic file differs from .*2/zoo\.cfg"):
        read_folder(tmp_path / "mixed")
