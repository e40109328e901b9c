"""The removal of old snapshots and logs (autopurge).

Rules this module keeps:

- The newest `keep` snapshots that look whole are kept, and each of them can be restored: the logs are kept from the
  last file that starts at or below the oldest of these snapshots.
- `keep` is at least 3. If there are fewer snapshots, all of them are kept, with the logs that they need.

Source: `PurgeTxnLog.purge`, `.purgeOlderSnapshots`; `autopurge.snapRetainCount`.
"""

from itertools import islice
from pathlib import Path

from refimpl.disk import snapshot
from refimpl.disk.files import VERSION_DIRECTORY, numbered
from refimpl.disk.logreader import PREFIX as LOG
from refimpl.disk.logreader import files_from

LEAST = 3
"""`autopurge.snapRetainCount` is never below this (`DatadirCleanupManager`, `PurgeTxnLog.purge`)."""


def purge(data_dir: Path, log_dir: Path, keep: int) -> list[Path]:
    """Remove the files that the newest `keep` snapshots do not need; return them. Raises OSError, ValueError."""
    if keep < LEAST:
        raise ValueError(f"autopurge.snapRetainCount is {keep}, expected {LEAST} or more")
    snapshots, logs = data_dir / VERSION_DIRECTORY, log_dir / VERSION_DIRECTORY
    whole = (zxid for zxid, path in snapshot.newest_first(snapshots) if snapshot.looks_whole(path))
    retained = list(islice(whole, keep))
    if not retained:
        return []
    oldest = retained[-1]
    needed = files_from(logs, oldest)
    removed = [path for zxid, path in numbered(snapshots, snapshot.PREFIX) if zxid < oldest]
    removed += [path for zxid, path in numbered(logs, LOG) if zxid < oldest and (zxid, path) not in needed]
    for path in removed:
        path.unlink()
    return removed
