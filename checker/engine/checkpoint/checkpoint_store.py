"""A folder in which a search is saved: files that grow, one file that each save writes anew, and a head with sizes and
checksums.

Rules:

- A save never destroys the previous one. Growing files are written only after their valid bytes, and the new save
  becomes valid by renaming the head, after everything is on disk.
- Every file is checked before it is used: the head by its own checksum and by its types, the others by the head. A
  forged head reaches no path, allocation or index unchecked: names come from a fixed set, numbers have bounds, and
  unknown fields are errors.
- Data is never executed: files hold numbers, the head is JSON.
- Only regular files inside the folder are opened: no symbolic link, hard link, FIFO or device is followed.
- One process uses the folder of a search, if the file system supports locks. On a cluster, each part has files in a
  folder of its own below it.
"""

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Meta, Struct

from checker.engine.checkpoint import CheckpointError
from checker.engine.result import MOST_SEED

LARGEST = 1 << 28  # bytes of a head; that of a search on a cluster has some for each piece of the level
AGAIN = "name another folder, or remove this one to begin anew"

Count = Annotated[int, Meta(ge=0, le=(1 << 48))]
Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
FileName = Annotated[str, Meta(pattern=r"\A(states|seen|questions|targets|labels|degrees|marks|now-[0-9]{1,15})\Z")]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class FileRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """The valid bytes of one file, and their SHA-256 in hexadecimal digits."""

    size: Count
    sha256: Hash


class Identity(Struct, frozen=True, forbid_unknown_fields=True):
    """The properties of a model and an engine that must match before a search is resumed.

    `symmetric`: renamed states count once.
    """

    model: str
    engine: Hash
    source: Hash
    seed: Annotated[int, Meta(ge=0, le=MOST_SEED)]
    symmetric: bool


class SavedHit(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A finding: the position of its property, the cells of its row, and the number of its state."""

    position: Count
    cells: tuple[Count, ...]
    state: Count


class SavedPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The files and the counts of a search, or of one part of it.

    `left` and `next` are rows of the current and of the next level. `labels`, `judgements` and `verdicts` are numbers
    of counters.
    """

    files: dict[FileName, FileRecord]
    tables: Hash
    states: Annotated[int, Meta(ge=1, le=1 << 32)]
    transitions: Count
    deadlocks: Count
    found: list[SavedHit]
    labels: Count
    judgements: Count
    verdicts: Count
    left: Count
    next: Count
    python_seconds: Seconds


class SavedFinding(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A finding: the position of its property, and the ordinals of its path."""

    position: Count
    ordinals: list[Count]


class SavedDivision(Struct, frozen=True, forbid_unknown_fields=True):
    """The level of a search on a cluster: the part and the rows of each piece, and the first state in each part."""

    piece_parts: list[Count]
    piece_sizes: list[Count]
    firsts: list[Count]


class SavedSearch(Struct, frozen=True, forbid_unknown_fields=True):
    """The save with this number. `levels` includes the current one."""

    number: Count
    seconds: Seconds
    levels: Annotated[list[Count], Meta(min_length=1)]
    found: list[SavedFinding]
    parts: Annotated[list[SavedPart], Meta(min_length=1)]
    division: SavedDivision | None

    @property
    def left(self) -> int:
        """The rows of the current level that were not expanded."""
        return sum(part.left for part in self.parts)

    @property
    def states(self) -> int:
        """The states seen."""
        return sum(self.levels) + sum(part.next for part in self.parts)

    @property
    def is_at_level(self) -> bool:
        """Whether nothing of the current level was expanded."""
        return self.left == self.levels[-1] > 0


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole document."""

    format: int
    identity: Identity
    search: SavedSearch


class _Format(Struct):
    format: int


_PLACE = re.compile(r" - at `\$\.?([^`]*)`\Z")
_FIELD = re.compile(r"(missing required|unknown) field `([^`]*)`")


def _fault(error: Exception) -> str:
    """The sentence for an error of msgspec, which names the field at fault."""
    if not isinstance(error, msgspec.ValidationError):
        return "it is not JSON"
    text = str(error)
    place = match[1].replace("[...]", "") if (match := _PLACE.search(text)) else ""
    if field := _FIELD.search(text):
        name = f"{place}.{field[2]}".removeprefix(".")
        return f"the field {name} is {'unknown' if field[1] == 'unknown' else 'missing'}"
    return f"the field {place} is invalid" if place else "it is not an object"


def decoded(text: bytes, where: str) -> Head:
    """The head in a text. Raises CheckpointError, which names the field at fault."""
    try:
        if msgspec.json.decode(text, type=_Format).format != FORMAT:
            raise CheckpointError(f"{where}: it is not in format {FORMAT}, which this version reads; {AGAIN}")
        return msgspec.json.decode(text, type=Head)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{where}: it is not the head of a checkpoint: {_fault(error)}; {AGAIN}") from None


def check_counts(saved: SavedSearch, where: str) -> None:
    """Raises CheckpointError for a head that contradicts itself."""
    now, division = f"now-{saved.number}", saved.division
    if any([name for name in part.files if name.startswith("now-")] != [now] for part in saved.parts):
        raise CheckpointError(f"{where}: its files must include {now!r} and no other file now-N; {AGAIN}")
    if division is None:
        is_right = len(saved.parts) == 1 and saved.states == saved.parts[0].states and saved.left <= saved.levels[-1]
    else:
        is_right = (
            len(division.piece_parts) == len(division.piece_sizes)
            and len(division.firsts) == len(saved.parts) > max(division.piece_parts, default=-1)
            and sum(division.piece_sizes) == saved.left == saved.levels[-1]
            and not any(part.next for part in saved.parts)
        )
    if not is_right:
        raise CheckpointError(f"{where}: its counts contradict each other; {AGAIN}")


FORMAT = 4
HEAD, NEW, PREFIX = "checkpoint.json", ".new", "checkpoint-"
CHUNK = 1 << 22  # bytes read or hashed at a time

Array = np.ndarray[Any, Any]
Source = Callable[[int], Iterable[Array]]  # the arrays after this number of bytes


class _ValidBytes(NamedTuple):
    """The number of valid bytes of a file, and their running hash."""

    size: int
    hash: Any

    def stored(self) -> FileRecord:
        return FileRecord(self.size, self.hash.hexdigest())


class SavedFiles:
    """The files of numbers in a folder: some grow, and the file now-N is that of the save N. `open` comes first."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder, self._prefix = folder, prefix
        self.grown: dict[str, _ValidBytes] = {}  # the valid parts of the growing files, by name
        self._names: set[str] = set()  # all files that were written, including failed writes
        self._open_folder: int | None = None

    def open(self) -> int:
        """Create the folder if necessary, and open it. Raises OSError."""
        if self._open_folder is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._open_folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        return self._open_folder

    def close(self) -> None:
        """Release the folder."""
        if self._open_folder is not None:
            os.close(self._open_folder)
            self._open_folder = None

    def path(self, name: str) -> Path:
        """The path of a file."""
        return self.folder / f"{self._prefix}{name}"

    def open_file(self, name: str, flags: int) -> IO[bytes]:
        """Open a file of the folder, which must be a regular one with a single name. Raises OSError."""
        if self._open_folder is None:
            raise OSError("the folder is not open")
        number = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=self._open_folder)
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            os.close(number)
            raise OSError(0, "it must be a regular file without other links")
        return cast("IO[bytes]", os.fdopen(number, "r+b" if flags & os.O_RDWR else "rb"))

    def create(self, name: str) -> IO[bytes]:
        """Create a file of the folder; a file or link of that name is removed first. Raises OSError."""
        if self._open_folder is not None:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._open_folder)
        return self.open_file(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    # -- writing ---------------------------------------------------------------------------------------------

    def size(self, name: str) -> int:
        """The valid bytes of a growing file; 0 without one."""
        return self.grown[name].size if name in self.grown else 0

    def append(self, name: str, arrays: Iterable[Array], *, to_disk: bool = False) -> None:
        """Append arrays to a growing file. Raises OSError; the valid bytes are then those before."""
        before = self.grown.get(name, _ValidBytes(0, hashlib.sha256()))
        size, digest = before.size, before.hash.copy()
        self._names.add(name)
        file_name = self._prefix + name
        with self.open_file(file_name, os.O_RDWR) if size else self.create(file_name) as file:
            file.seek(size)
            for array in arrays:
                data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
                file.write(data)
                digest.update(data)
                size += len(data)
            if to_disk:
                _to_disk(file)
        self.grown[name] = _ValidBytes(size, digest)

    def save(self, number: int, growing: Mapping[str, Source], now: Iterable[Array]) -> dict[str, FileRecord]:
        """Write the file of this save and the new data of growing files to disk. Raises OSError.

        `growing` has for each name a function from a number of bytes to the arrays after them.
        """
        before, name = dict(self.grown), f"now-{number}"
        try:
            for grown, source in growing.items():
                self.append(grown, source(self.size(grown)), to_disk=True)
            self.append(name, now, to_disk=True)
            return {file_name: valid.stored() for file_name, valid in self.grown.items()}
        except BaseException:
            self.grown = before
            raise
        finally:
            self.grown.pop(name, None)

    def forget_saves(self, *numbers: int) -> None:
        """Remove the files of all saves but these."""
        paths = {self.path(f"now-{number}") for number in numbers}
        for path in {*self.folder.glob(f"{self._prefix}now-*")} - paths:
            with suppress(OSError):  # it only takes room
                path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all files that were written or read. Raises OSError."""
        for path in [self.path(name) for name in self._names] + list(self.folder.glob(f"{self._prefix}now-*")):
            path.unlink(missing_ok=True)
        self.grown.clear()

    # -- reading ---------------------------------------------------------------------------------------------

    def restore(self, number: int, files: Mapping[FileName, FileRecord], sizes: Mapping[str, int]) -> None:
        """Go back to a save, whose files have these sizes by its counts. Raises CheckpointError for a damaged file."""
        for name in (*files, *sizes):
            if name not in sizes:
                raise CheckpointError(f"{self.path(name)}: a search of this model has no such file; {AGAIN}")
            if name not in files or files[name].size != sizes[name]:
                raise CheckpointError(f"{self.path(name)}: it must have {sizes[name]:,} bytes by the counts; {AGAIN}")
        self.grown = {name: self._checked(name, stored) for name, stored in files.items()}
        self._names |= {*files}
        self.grown.pop(f"now-{number}")

    def _checked(self, name: str, stored: FileRecord) -> _ValidBytes:
        path, rest, digest = self.path(name), stored.size, hashlib.sha256()
        try:
            with self.open_file(path.name, os.O_RDONLY) as file:
                while rest and (data := file.read(min(rest, CHUNK))):
                    digest.update(data)
                    rest -= len(data)
        except OSError as error:
            raise CheckpointError(
                f"{path}: it belongs to the checkpoint and cannot be read ({error.strerror or error}); {AGAIN}"
            ) from None
        if rest:
            raise CheckpointError(f"{path}: {rest:,} bytes are missing at its end; {AGAIN}")
        if digest.hexdigest() != stored.sha256:
            raise CheckpointError(f"{path}: it is damaged: its checksum is wrong; {AGAIN}")
        return _ValidBytes(stored.size, digest)

    def read(self, name: str, kind: Any) -> Iterator[Array]:
        """The contents of a growing file, as arrays of a kind, at most CHUNK bytes each."""
        kind = np.dtype(kind)
        most, rest = CHUNK // kind.itemsize, self.size(name) // kind.itemsize
        if not rest:
            return
        with self.open_file(self._prefix + name, os.O_RDONLY) as file:
            while rest:
                yield np.fromfile(file, kind, min(rest, most))
                rest -= min(rest, most)

    def now(self, number: int) -> IO[bytes]:
        """The file of a save, open at its beginning."""
        return self.open_file(f"{self._prefix}now-{number}", os.O_RDONLY)


class CheckpointStore:
    """The folder of one search, with its head: `open` it first, and `close` it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.head = folder, folder / HEAD
        self.files = SavedFiles(folder, PREFIX)

    def open(self) -> None:
        """Create the folder if necessary, and lock it. Raises CheckpointError."""
        try:
            lock = self.files.open()
            if not os.access(self.folder, os.W_OK):
                raise PermissionError("nothing may be written there")
        except (OSError, ValueError) as error:
            self.close()
            if self.folder.is_symlink():
                raise CheckpointError(
                    f"{self.folder}: it is a symbolic link; name the folder that it leads to"
                ) from None
            raise CheckpointError(f"{self.folder}: no checkpoint can be kept there ({error})") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(f"{self.folder}: another search is kept there; name another folder") from None
        except OSError:
            pass  # a file system that cannot lock

    def close(self) -> None:
        """Release the folder."""
        self.files.close()

    def put_head(self, document: Head) -> None:
        """Replace the head. Raises OSError; the previous one is then still valid."""
        text, new = msgspec.json.encode(document), self.head.with_suffix(NEW)
        with self.files.create(new.name) as file:
            file.write(f"{hashlib.sha256(text).hexdigest()}\n".encode() + text)
            _to_disk(file)
        new.replace(self.head)
        with suppress(OSError):  # the save is valid from here on, even if the system cannot sync a folder
            os.fsync(self.files.open())

    def remove(self) -> None:
        """Remove the head; the folder stays. Raises OSError."""
        self.head.unlink(missing_ok=True)
        self.head.with_suffix(NEW).unlink(missing_ok=True)

    def load_head(self) -> Head | None:
        """The head, or None without one. Raises CheckpointError."""
        try:
            with self.files.open_file(self.head.name, os.O_RDONLY) as file:
                data = file.read(LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointError(f"{self.head}: it cannot be read ({error.strerror or error}); {AGAIN}") from None
        checksum, _, text = data.partition(b"\n")
        if len(data) > LARGEST or checksum != hashlib.sha256(text).hexdigest().encode():
            raise CheckpointError(f"{self.head}: it is damaged, or no checkpoint: its checksum is wrong; {AGAIN}")
        head = decoded(text, str(self.head))
        check_counts(head.search, str(self.head))
        return head


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
