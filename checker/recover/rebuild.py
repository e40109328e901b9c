"""New data directories: one for each server, in a new folder, durable, and read back.

Rules of this module:

- Nothing that exists is changed. The folder must be new or empty, and must not be inside a surviving directory.
- All servers get the same snapshot, both epochs, and no log.
- The new files are read again before the report: the tree, the epochs and the id.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from checker.recover.evidence import SurvivingDisk
from checker.recover.recovery import Recovery
from checker.user_files import OutputError
from refimpl.disk import epochs, snapshot
from refimpl.disk.body import DamagedSnapshotError
from refimpl.disk.files import VERSION_DIRECTORY, replace_file, sync_directory
from refimpl.disk.survey import MYID, survey
from refimpl.tree import Tree

_READ = 1 << 20


def check_target(folder: Path, disks: tuple[SurvivingDisk, ...]) -> None:
    """Raises OutputError for a folder that new directories cannot be written into."""
    place = folder.resolve()
    for disk in disks:
        for directory in {disk.directory.data.resolve(), disk.directory.logs.resolve()}:
            if place == directory or directory in place.parents:
                raise OutputError(f"--to {folder}: it is inside of {directory}; name a folder beside the old data")
    try:
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"--to {folder}: it is no folder; name a new one")
        if folder.is_dir() and any(folder.iterdir()):
            raise OutputError(f"--to {folder}: it is not empty; name a new folder, so that nothing is overwritten")
    except OSError as error:
        raise OutputError(f"--to {folder}: it cannot be read ({error.strerror})") from None


def written(recovery: Recovery, folder: Path) -> list[Path]:
    """Write the new directories, verify them, and return them. Raises OutputError."""
    check_target(folder, recovery.disks)
    try:
        directories = list(_write(recovery, folder))
        sync_directory(folder)
        sync_directory(folder.resolve().parent)
    except OSError as error:
        raise OutputError(f"--to {folder}: it cannot be written ({error.strerror or error})") from None
    return directories


def _write(recovery: Recovery, folder: Path) -> Iterator[Path]:
    zxid = recovery.history.end
    sealed: Path | None = None
    checksum = ""
    for sid in recovery.servers:
        home = folder / ("server" if sid is None else f"server-{sid}")
        directory = home / VERSION_DIRECTORY
        directory.mkdir(parents=True)
        if sid is not None:
            replace_file(home / MYID, (f"{sid}\n".encode(),))
        if sealed is None:
            sealed = snapshot.save(directory, recovery.tree, zxid)
            checksum = _checksum(sealed)
            _verify_tree(sealed, zxid, recovery.tree)
        else:
            replace_file(directory / sealed.name, _pieces(sealed))
        if recovery.epoch:
            epochs.save_accepted(directory, recovery.epoch)
            epochs.save_current(directory, recovery.epoch)
        sync_directory(home)
        sync_directory(folder)
        if _checksum(directory / sealed.name) != checksum:
            raise OutputError(f"{directory / sealed.name}: it reads otherwise than it was written; use another disk")
        said = survey(home)
        wrong = said.damage is not None or said.myid.value != sid or said.last_zxid != zxid
        if wrong or (said.current.value or 0) != recovery.epoch or (said.accepted.value or 0) != recovery.epoch:
            raise OutputError(f"{home}: it reads otherwise than it was written; use another disk")
        yield home


def _verify_tree(path: Path, zxid: int, tree: Tree) -> None:
    """Compare the tree in a new snapshot with the one that was to be written."""
    try:
        tree_read = snapshot.read(path, zxid).tree
    except DamagedSnapshotError as error:
        raise OutputError(f"{error}; it was just written: use another disk") from None
    same = len(tree_read) == len(tree) and all(tree_read.node(name) == znode for name, znode in tree.znodes())
    if not same or tree_read.sessions != tree.sessions:
        raise OutputError(f"{path}: its tree is not the one that was to be written; use another disk")


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_READ):
            yield piece


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    for piece in _pieces(path):
        digest.update(piece)
    return digest.hexdigest()
