"""The dynamic files of a node: what each holds after a configuration was seen or became active, and what a start reads.

Expected files are those of real 3.9.5 servers (`docs/reference-reconfig-facts.md`, files and answers at each moment).
"""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from refimpl.disk.files import DataError, replace_file
from refimpl.membership import Membership
from refimpl.process import read_settings, refusal_of
from spec.config import ConfigError, parse_ensemble
from spec.config.dynamic_files import view_with_text
from spec.quorum import View, majority_view

LINES = {sid: f"server.{sid}=127.0.0.1:288{sid}:388{sid}:participant;127.0.0.1:218{sid}" for sid in range(1, 6)}
STATIC = "tickTime=500\ninitLimit=5\nsyncLimit=2\nreconfigEnabled=true\ndataDir={}\n"
FIRST, SECOND = 0x100000000, 0x100000007


def view(*sids: int, version: int) -> View:
    text = "\n".join(LINES[sid] for sid in sids)
    return view_with_text(parse_ensemble(f"{text}\nversion={version:x}"))


@pytest.fixture
def zoo_cfg(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "myid").write_text("1\n")
    file = tmp_path / "zoo.cfg"
    file.write_text(STATIC.format(tmp_path / "data") + "\n".join(LINES[sid] for sid in (1, 2, 3)) + "\n")
    return file


def membership(zoo_cfg: Path) -> Membership:
    settings = read_settings(zoo_cfg)
    return Membership(zoo_cfg, settings.sid, settings.config.ensemble, settings.last_seen)


def names(zoo_cfg: Path) -> set[str]:
    return {each.name for each in zoo_cfg.parent.iterdir()} - {"data"}


def test_a_configuration_that_is_seen_is_in_next_with_its_version(zoo_cfg: Path) -> None:
    members = membership(zoo_cfg)
    members.see(view(1, 2, 3, 4, version=SECOND))
    assert names(zoo_cfg) == {"zoo.cfg", "zoo.cfg.dynamic.next"}
    text = zoo_cfg.with_name("zoo.cfg.dynamic.next").read_text()
    assert text.split() == [*(LINES[sid] for sid in (1, 2, 3, 4)), "version=100000007"]
    assert set(members.servers) == {1, 2, 3, 4}
    assert "server.4" not in members.text


def test_an_active_configuration_has_a_file_with_its_version_in_the_name(zoo_cfg: Path) -> None:
    before = zoo_cfg.read_text()
    members = membership(zoo_cfg)
    members.see(view(1, 2, 3, 4, version=SECOND))
    members.activate(view(1, 2, 3, 4, version=SECOND))
    dynamic = zoo_cfg.with_name("zoo.cfg.dynamic.100000007")
    assert names(zoo_cfg) == {"zoo.cfg", "zoo.cfg.bak", dynamic.name}
    assert dynamic.read_text().split() == [LINES[sid] for sid in (1, 2, 3, 4)]
    assert zoo_cfg.with_name("zoo.cfg.bak").read_text() == before
    assert zoo_cfg.read_text() == STATIC.format(zoo_cfg.parent / "data") + f"dynamicConfigFile={dynamic}\n"
    assert members.text.split()[-1] == "version=100000007"


def test_a_start_reads_the_active_configuration_and_the_one_seen_last(zoo_cfg: Path) -> None:
    members = membership(zoo_cfg)
    members.activate(view(1, 2, 3, version=FIRST))
    members.see(view(1, 2, 3, 4, version=SECOND))
    settings = read_settings(zoo_cfg)
    assert settings.view == view(1, 2, 3, version=FIRST)
    assert settings.last_seen == view(1, 2, 3, 4, version=SECOND)


@pytest.mark.parametrize("version", [FIRST, FIRST - 1])
def test_a_configuration_seen_last_that_is_not_later_does_not_count(zoo_cfg: Path, version: int) -> None:
    members = membership(zoo_cfg)
    members.activate(view(1, 2, 3, version=FIRST))
    members.see(view(1, 2, 3, 4, version=version))
    assert read_settings(zoo_cfg).last_seen is None


def test_without_reconfigenabled_the_configuration_seen_last_does_not_count(zoo_cfg: Path) -> None:
    membership(zoo_cfg).see(view(1, 2, 3, 4, version=SECOND))
    zoo_cfg.write_text(zoo_cfg.read_text().replace("reconfigEnabled=true\n", ""))
    settings = read_settings(zoo_cfg)
    assert settings.last_seen is None
    assert replace(settings.view, text="") == majority_view((1, 2, 3))


def test_a_damaged_file_of_the_configuration_seen_last_is_an_error_with_its_place(zoo_cfg: Path) -> None:
    following = zoo_cfg.with_name("zoo.cfg.dynamic.next")
    following.write_text("server.1=nonsense\n")
    with pytest.raises(ConfigError, match=f"{following}:1: server.1: "):
        read_settings(zoo_cfg)


def test_a_server_that_is_left_out_does_not_start_and_the_message_names_the_remedy(zoo_cfg: Path) -> None:
    membership(zoo_cfg).activate(view(2, 3, 4, version=SECOND))
    with pytest.raises(
        ConfigError, match=r"server 1 is not in the server list .*; write one of 2, 3, 4, or add server.1"
    ):
        read_settings(zoo_cfg)


def test_a_file_that_cannot_be_written_is_an_error(zoo_cfg: Path) -> None:
    members = membership(zoo_cfg)
    zoo_cfg.with_name("zoo.cfg.dynamic.next").mkdir()
    with pytest.raises(OSError):
        members.see(view(1, 2, 3, 4, version=SECOND))


def test_a_later_configuration_that_was_seen_outlives_the_activation_of_an_earlier_one(zoo_cfg: Path) -> None:
    """A server in an election takes a committed configuration from a vote, and may have acknowledged the next one."""
    members = membership(zoo_cfg)
    members.see(view(1, 2, 3, 4, 5, version=SECOND + 2))
    members.activate(view(1, 2, 3, 4, version=SECOND))
    settings = read_settings(zoo_cfg)
    assert (settings.view.version, set(members.servers)) == (SECOND, {1, 2, 3, 4, 5})
    assert settings.last_seen == view(1, 2, 3, 4, 5, version=SECOND + 2)


def test_the_rewritten_zoo_cfg_and_its_copy_keep_their_permissions(zoo_cfg: Path) -> None:
    zoo_cfg.chmod(0o600)
    membership(zoo_cfg).activate(view(1, 2, 3, version=FIRST))
    for name in ("zoo.cfg", "zoo.cfg.bak"):
        assert zoo_cfg.with_name(name).stat().st_mode & 0o777 == 0o600


def test_the_first_zoo_cfg_is_kept_although_a_comment_names_the_key(zoo_cfg: Path) -> None:
    zoo_cfg.write_text(f"# dynamicConfigFile is written by the server\n{zoo_cfg.read_text()}")
    before = zoo_cfg.read_text()
    membership(zoo_cfg).activate(view(1, 2, 3, version=FIRST))
    assert zoo_cfg.with_name("zoo.cfg.bak").read_text() == before


def test_a_zoo_cfg_that_has_become_unreadable_is_an_error_with_its_name(zoo_cfg: Path) -> None:
    members = membership(zoo_cfg)
    zoo_cfg.write_bytes(b"# \xff\n")
    with pytest.raises(DataError, match=f"{zoo_cfg}: cannot be read: .*; write it in UTF-8"):
        members.activate(view(1, 2, 3, version=FIRST))


@pytest.mark.parametrize("writes", range(4))
def test_a_crash_between_the_writes_of_an_activation_leaves_the_old_or_the_new_configuration(
    zoo_cfg: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """The three files, and the removal of `.next`, in their order; the new one is never lost."""
    members = membership(zoo_cfg)
    members.see(view(1, 2, 3, 4, version=SECOND))
    done = 0

    def crashing(*given: Any) -> None:
        nonlocal done
        if done == writes:
            raise InterruptedError("the process ends here")
        done += 1
        replace_file(*given)

    monkeypatch.setattr("refimpl.membership.replace_file", crashing)
    monkeypatch.setattr("pathlib.Path.unlink", crashing)
    with pytest.raises(InterruptedError):
        members.activate(view(1, 2, 3, 4, version=SECOND))
    monkeypatch.undo()
    settings = read_settings(zoo_cfg)
    is_new = settings.view == view(1, 2, 3, 4, version=SECOND)
    assert is_new is (writes == 3)
    assert settings.view.voters == ({1, 2, 3, 4} if is_new else {1, 2, 3})
    assert settings.last_seen == (None if is_new else view(1, 2, 3, 4, version=SECOND))


def heard(zoo_cfg: Path, *lines: str) -> str:
    """The reason why server 1 does not adopt a configuration with these lines."""
    ensemble = parse_ensemble("\n".join((*lines, f"version={SECOND:x}")), standalone_enabled=False)
    return refusal_of(read_settings(zoo_cfg), membership(zoo_cfg), view_with_text(ensemble))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((LINES[2], LINES[3]), "server.1"),
        (("server.1=127.0.0.1:9:10;127.0.0.1:2181", LINES[2]), "another address"),
        (("server.1=127.0.0.1:2881:3881;10.9.9.9:2181", LINES[2]), "clients reach"),
        (("server.1=127.0.0.1:2881:3881;127.0.0.1:2188", LINES[2]), "clients reach"),
        ((LINES[1], LINES[2].replace("participant", "observer")), "standaloneEnabled"),
        ((LINES[1],), "run alone"),
    ],
)
def test_a_configuration_that_no_start_would_accept_is_not_adopted(
    zoo_cfg: Path, lines: tuple[str, ...], reason: str
) -> None:
    before = zoo_cfg.read_text()
    assert reason in heard(zoo_cfg, *lines)
    assert (zoo_cfg.read_text(), names(zoo_cfg)) == (before, {"zoo.cfg"})


@pytest.mark.parametrize("members", [(1, 2), (1, 2, 3, 4, 5)])
def test_a_configuration_that_a_start_accepts_is_adopted(zoo_cfg: Path, members: tuple[int, ...]) -> None:
    assert heard(zoo_cfg, *(LINES[sid] for sid in members)) == ""
    observer = LINES[1].replace("participant", "observer")
    assert heard(zoo_cfg, observer, LINES[2], LINES[3]) == ""


def test_what_is_adopted_is_what_the_next_start_reads(zoo_cfg: Path) -> None:
    members, changed = membership(zoo_cfg), view(1, 2, 4, version=SECOND)
    assert refusal_of(read_settings(zoo_cfg), members, changed) == ""
    members.activate(changed)
    assert read_settings(zoo_cfg).view == changed
