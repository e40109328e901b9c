"""Releases of the real server: the known ones, where their jars are, and every error of the download.

A script replaces Maven. Its messages are recordings: Maven 3.8.7 offline, Maven behind a closed port, and Maven
with a version that Maven Central does not have. `tests/node/test_releases.py` starts downloaded servers.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import real, releases
from harness.__main__ import main
from harness.ensemble import Ensemble
from harness.processes import ServerError

PLUGIN = (
    "Plugin org.apache.maven.plugins:maven-dependency-plugin:3.6.1 or one of its dependencies could not be resolved"
)
OFFLINE = f"{PLUGIN}: Cannot access central (https://repo.maven.apache.org/maven2) in offline mode"
CLOSED = f"{PLUGIN}: Could not transfer artifact from/to central: Connect to 127.0.0.1:9 failed: Connection refused"
ABSENT = "Failed to execute goal: Could not find artifact org.apache.zookeeper:zookeeper:jar:3.9.5 in central"
LIBRARIES = ("asm-9.7.1.jar", "jackson-databind-2.18.1.jar")
COPIES = (
    "mkdir $outputDirectory; cd $outputDirectory; "
    f"if [ $release ]; then touch zookeeper-$release.jar; else touch {' '.join(LIBRARIES)}; fi"
)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder for jars, and pinned jars of releases and libraries that are empty, as those of the script."""
    monkeypatch.setenv("QUORATE_ZOOKEEPER", str(tmp_path / "jars"))
    sums = tmp_path / "jars.sha512"
    names = (*LIBRARIES, "zookeeper-3.8.6.jar", "zookeeper-3.9.5.jar")
    sums.write_text("".join(f"{hashlib.sha512().hexdigest()}  {name}\n" for name in names))
    monkeypatch.setattr(releases, "SUMS", sums)
    return tmp_path / "jars"


def install_maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> Path:
    """Put a script called mvn in front of the PATH; return the file in which it counts its calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    calls = tmp_path / "calls"
    text = f"""#!/bin/bash
    echo "$@" >> {calls}
    for each in "$@"; do [[ $each == -D*=* ]] && declare "${{each#-D}}" 2>/dev/null; done
    {script}
    """
    (folder / "mvn").write_text(text)
    (folder / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return calls


def test_the_known_releases_are_the_tags_of_the_two_maintained_lines() -> None:
    # `git tag` of apache/zookeeper, 2026-11: release-3.8.0 to release-3.8.6, release-3.9.0 to release-3.9.5.
    assert releases.RELEASES == (
        "3.8.0", "3.8.1", "3.8.2", "3.8.3", "3.8.4", "3.8.5", "3.8.6",
        "3.9.0", "3.9.1", "3.9.2", "3.9.3", "3.9.4", "3.9.5",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("release", "near"),
    [
        ("3.9.6", "3.9.5"),
        ("3.8.7", "3.8.6"),
        ("3.10.0", "3.9.5"),
        ("3.9", "3.9.0"),
        ("3.4.13", "3.8.0"),
        ("4", "3.9.5"),
        ("3.9.5-beta", "3.9.5"),
    ],
)
def test_an_unknown_release_is_answered_with_the_nearest(cache: Path, release: str, near: str) -> None:
    with pytest.raises(
        ServerError, match=rf"release of ZooKeeper is called '{release}'; the nearest known one is {near};"
    ):
        releases.fetch(release)
    assert f"{near};" in (real.available(release) or "")


@pytest.mark.parametrize("release", ["", "newest", "../../etc", "9" * 5000])
def test_text_that_is_not_a_version_is_answered_with_the_list(cache: Path, release: str) -> None:
    with pytest.raises(
        ServerError, match=r"no known release of ZooKeeper is called .*; known are 3.8.0 \(Debian\) and 3.8"
    ):
        releases.fetch(release)


def test_a_release_that_was_not_fetched_is_answered_with_the_command(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=rf"ZooKeeper 3.9.5 is not in {cache}; python -m harness fetch 3.9.5"):
        Ensemble(["real"], tmp_path, release="3.9.5")


def test_the_folder_is_the_users_cache_unless_a_variable_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUORATE_ZOOKEEPER", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert releases.folder_of("3.9.5") == Path("/cache/quorate/zookeeper-3.9.5")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/of")
    assert releases.folder_of("3.8.6") == Path("/home/of/.cache/quorate/zookeeper-3.8.6")
    monkeypatch.setenv("QUORATE_ZOOKEEPER", "/elsewhere")
    assert releases.folder_of("3.9.5") == Path("/elsewhere/zookeeper-3.9.5")


def test_debians_release_is_not_fetched(cache: Path) -> None:
    with pytest.raises(ServerError, match=r"3.8.0 is Debian's package; apt-get install zookeeper"):
        releases.fetch("3.8.0")


def test_a_missing_maven_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match="mvn is not on the PATH; apt-get install -y --no-install-recommends maven"):
        releases.fetch("3.9.5")


def test_a_download_gets_its_name_when_it_is_complete_and_happens_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    too_early = f"[[ -e {cache}/zookeeper-3.9.5 ]] && exit 7"
    calls = install_maven(monkeypatch, tmp_path, f"{too_early}; {COPIES}")
    assert releases.fetch("3.9.5") == releases.fetch("3.9.5") == cache / "zookeeper-3.9.5"
    assert [path.name for path in cache.iterdir()] == ["zookeeper-3.9.5"]
    assert (cache / "zookeeper-3.9.5" / "zookeeper-3.9.5.jar").is_file()
    assert len(calls.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ('echo other > "$outputDirectory/zookeeper-3.9.5.jar"', "the SHA-512 of zookeeper-3.9.5.jar is .*, not cf83e1"),
        ('touch "$outputDirectory/more.jar"', "the SHA-512 of more.jar is cf83e1.*, and is not listed"),
    ],
)
def test_a_jar_that_is_not_the_pinned_one_is_refused(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str, reason: str
) -> None:
    calls = install_maven(monkeypatch, tmp_path, f"{COPIES}; {change}")
    with pytest.raises(ServerError, match=reason):
        releases.fetch("3.9.5")
    assert not list(cache.iterdir()) and "--strict-checksums" in calls.read_text()


def test_both_jars_of_every_release_are_pinned() -> None:
    lines = releases.SUMS.read_text(encoding="ascii").splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{128}  [A-Za-z0-9._-]+\.jar", line) for line in lines)
    names = {line.split()[1] for line in lines}
    assert names >= {library.jar for library in releases.LIBRARIES}
    assert names >= {f"zookeeper-{release}.jar" for release in releases.OLDER + releases.MAVEN}
    assert names >= {f"zookeeper-jute-{release}.jar" for release in releases.MAVEN}


def test_the_copy_of_another_process_that_was_faster_stays(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    faster = f"mkdir {cache}/zookeeper-3.9.5; touch {cache}/zookeeper-3.9.5/faster"
    install_maven(monkeypatch, tmp_path, f"{COPIES}; {faster}")
    assert [path.name for path in releases.fetch("3.9.5").iterdir()] == ["faster"]
    assert [path.name for path in cache.iterdir()] == ["zookeeper-3.9.5"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(f"\x1b[0m[ERROR] {OFFLINE}", "Maven Central cannot be reached from here: Plugin", id="offline"),
        pytest.param(
            f"[ERROR] {CLOSED}", "Maven Central cannot be reached from here: .*Connection refused", id="closed"
        ),
        pytest.param(f"[ERROR] {ABSENT}", "Maven ended with 1: .*Could not find artifact", id="absent"),
        pytest.param("java: not found", "Maven ended with 1: java: not found", id="another message"),
        pytest.param("", "Maven ended with 1: no message", id="nothing"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_why(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, expected: str
) -> None:
    (tmp_path / "said").write_text(said)
    install_maven(monkeypatch, tmp_path, f"mkdir $outputDirectory; cat {tmp_path}/said; exit 1")
    with pytest.raises(ServerError, match=f"ZooKeeper 3.9.5 was not downloaded, {expected}"):
        releases.fetch("3.9.5")
    assert list(cache.iterdir()) == []


def test_a_download_without_the_server_is_a_failure(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install_maven(monkeypatch, tmp_path, "mkdir $outputDirectory; exit 0")
    with pytest.raises(ServerError, match=r"3.9.5 was not downloaded, Maven ended with 0: no message"):
        releases.fetch("3.9.5")
    assert list(cache.iterdir()) == []


def test_a_download_is_bounded(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_maven(monkeypatch, tmp_path, "exec sleep 60")
    monkeypatch.setattr(releases, "SECONDS", 0.2)
    with pytest.raises(ServerError, match=r"Maven did not download ZooKeeper 3.9.5 within 0.2 s"):
        releases.fetch("3.9.5")
    assert list(cache.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUORATE_ZOOKEEPER", str(tmp_path / "file"))
    install_maven(monkeypatch, tmp_path, "exit 9")
    with pytest.raises(
        ServerError, match=r"file/zookeeper-3.9.5 cannot be written: .*; QUORATE_ZOOKEEPER names another"
    ):
        releases.fetch("3.9.5")


def test_the_command_prints_folders_or_one_line_of_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_maven(monkeypatch, tmp_path, COPIES)
    assert main(["fetch", "3.9.5", "3.8.6"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{cache}/zookeeper-3.9.5", f"{cache}/zookeeper-3.8.6"]
    assert all((library.folder / library.jar).is_file() for library in releases.LIBRARIES)
    assert main(["fetch", "3.9.77"]) == 1
    assert capsys.readouterr().err.startswith("error: no known release of ZooKeeper is called '3.9.77'; the nearest")
    assert main(["releases"]) == 0
    listed = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert tuple(listed) == releases.OLDER + releases.RELEASES
    assert listed["3.9.4"] == f"ZooKeeper 3.9.4 is not in {cache}; python -m harness fetch 3.9.4"


def test_the_command_runs_before_anything_is_installed(cache: Path) -> None:
    root = Path(releases.__file__).parent.parent
    line = [sys.executable, "-S", "-m", "harness", "releases"]  # -S: without site-packages
    ended = subprocess.run(line, cwd=root, capture_output=True, text=True, check=True, timeout=60)
    assert len(ended.stdout.splitlines()) == len(releases.OLDER + releases.RELEASES)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("3.9.5", ["3.9.5", "3.9.5"]), ({2: "3.9.5"}, ["3.8.0", "3.9.5"]), (["3.8.6", "3.9.5"], ["3.8.6", "3.9.5"])],
)
def test_servers_get_one_release_or_each_one(tmp_path: Path, given: object, expected: list[str]) -> None:
    ensemble = Ensemble(["node", "node"], tmp_path, release=given)  # type: ignore[arg-type]
    assert [ensemble.release(sid) for sid in ensemble.sids] == expected


def test_releases_for_other_servers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="a release was given for server 3; the servers are 1, 2"):
        Ensemble(["node", "node"], tmp_path, release={3: "3.9.5"})
    with pytest.raises(ServerError, match=r"2 servers need as many releases, and 1 were given: \['3.9.5'\]"):
        Ensemble(["node", "node"], tmp_path, release=["3.9.5"])
