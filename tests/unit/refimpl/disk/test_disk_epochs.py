"""The epoch files: writing, repair, and refusal."""

from pathlib import Path

import pytest

from refimpl.disk import epochs
from refimpl.disk.epochs import Epochs
from refimpl.disk.files import DataError

ZXID_OF_EPOCH_3 = 0x3_0000_0007


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        (directory / name.replace("_", ".")).write_text(text)


def test_missing_files_get_the_epoch_of_the_last_zxid(tmp_path: Path) -> None:
    assert epochs.load(tmp_path, ZXID_OF_EPOCH_3) == Epochs(3, 3)
    assert (tmp_path / "acceptedEpoch").read_bytes() == b"3"
    assert (tmp_path / "currentEpoch").read_bytes() == b"3"


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    epochs.save_accepted(tmp_path, 8)
    epochs.save_current(tmp_path, 7)
    assert epochs.load(tmp_path, ZXID_OF_EPOCH_3) == Epochs(8, 7)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acceptedEpoch", "currentEpoch"]


def test_a_line_feed_after_the_number_is_allowed(tmp_path: Path) -> None:
    write(tmp_path, acceptedEpoch="4\n", currentEpoch="4\r\nand more")
    assert epochs.load(tmp_path, 0) == Epochs(4, 4)


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", " 1", "99999999999", "²", "1" * 100])
def test_what_is_no_epoch_is_refused_by_name(tmp_path: Path, text: str) -> None:
    write(tmp_path, acceptedEpoch="1", currentEpoch=text)
    with pytest.raises(DataError, match=r"currentEpoch: found .* expected an epoch, a number from 0 to 2147483647"):
        epochs.load(tmp_path, 0)


def test_an_accepted_epoch_behind_the_current_one_is_refused(tmp_path: Path) -> None:
    write(tmp_path, acceptedEpoch="3", currentEpoch="4")
    with pytest.raises(DataError, match="the accepted epoch is 3, below 4 in currentEpoch"):
        epochs.load(tmp_path, 0)


def test_a_crash_between_the_log_and_the_current_epoch_is_no_obstacle(tmp_path: Path) -> None:
    write(tmp_path, acceptedEpoch="5", currentEpoch="2")
    assert epochs.load(tmp_path, ZXID_OF_EPOCH_3) == Epochs(5, 2)


def test_an_accepted_epoch_behind_the_last_zxid_is_refused(tmp_path: Path) -> None:
    write(tmp_path, acceptedEpoch="2", currentEpoch="2")
    with pytest.raises(DataError, match="the accepted epoch is 2, below 2 in currentEpoch or 3 of the last"):
        epochs.load(tmp_path, ZXID_OF_EPOCH_3)


def test_an_interrupted_change_of_the_current_epoch_is_finished(tmp_path: Path) -> None:
    write(tmp_path, acceptedEpoch="5", currentEpoch="2", currentEpoch_tmp="4")
    assert epochs.load(tmp_path, ZXID_OF_EPOCH_3) == Epochs(5, 4)
    assert (tmp_path / "currentEpoch").read_text() == "4"


def test_an_interrupted_change_that_is_still_behind_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, acceptedEpoch="5", currentEpoch="1", currentEpoch_tmp="2")
    assert epochs.load(tmp_path, ZXID_OF_EPOCH_3) == Epochs(5, 1)


def test_a_temporary_file_beside_good_files_means_nothing(tmp_path: Path) -> None:
    write(tmp_path, acceptedEpoch="5", currentEpoch="3", currentEpoch_tmp="")
    assert epochs.load(tmp_path, ZXID_OF_EPOCH_3) == Epochs(5, 3)


def test_a_failed_save_leaves_the_old_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    epochs.save_current(tmp_path, 1)

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        epochs.save_current(tmp_path, 2)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("currentEpoch", "1")]


def test_the_directory_is_synced_after_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr("os.fsync", lambda fd: synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())))
    epochs.save_accepted(tmp_path, 1)
    assert synced == [str(tmp_path / "acceptedEpoch.tmp"), str(tmp_path)]
