"""The voters of the ensemble: stated, in configuration files, and in the data.

Each newest source counts: the one that is stated, the configuration in the data (the znode `/zookeeper/config` of a
snapshot, or a later reconfiguration in the log), the dynamic files, and the zoo.cfg beside a dataDir. Sources with
different voters are all kept: a write may be acknowledged by a quorum of any of them. So a stated source says whose
disks are made, and hides no quorum that the data shows.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from checker.recover.evidence import RecoverError, SurvivingDisk
from checker.user_files import CONFIGURATION, TooLargeError, read_bytes
from spec.config import ConfigError, parse_zoo_cfg
from spec.config.dynamic_files import view_in
from spec.quorum import Sid, View, majority_view, standalone_view


class Electorate(msgspec.Struct, frozen=True):
    """The views that may have been in use, each with its source; empty if the voters are unknown.

    `stated` is the view that the user has given.
    """

    views: tuple[View, ...]
    sources: tuple[str, ...]
    stated: View | None = None

    @property
    def members(self) -> tuple[Sid, ...]:
        """All servers, voters and observers, in the order of their ids."""
        views = self.views if self.stated is None else (self.stated,)
        return tuple(sorted({sid for view in views for sid in view.members}))

    @property
    def runs_alone(self) -> bool:
        """Whether the only server runs without an ensemble; it needs no id."""
        return any(view.standalone for view in self.views)


def electorate_of(disks: Sequence[SurvivingDisk], voters: Sequence[Sid], config: Path | None) -> Electorate:
    """Return the views, from the options or from the disks. Raises RecoverError and ConfigError."""
    stated: list[tuple[View, str]] = []
    if voters:
        stated.append((majority_view(voters), "--voters"))
    elif config is not None:
        stated.append((_view_of_file(config), str(config)))
    views: dict[View, str] = {}
    for view, source in (*stated, *_views_in_data(disks), *_views_in_files(disks)):
        views.setdefault(msgspec.structs.replace(view, version=0, text="", addresses=None), source)
    if not views and len(disks) == 1 and _runs_alone(disks[0]):
        alone = standalone_view(disks[0].sid or 0)
        return Electorate((alone,), (f"{disks[0].directory.name} has no epochs, so its server ran alone",))
    return Electorate(tuple(views), tuple(views.values()), stated[0][0] if stated else None)


def _runs_alone(disk: SurvivingDisk) -> bool:
    """Whether a disk is that of a standalone server, which keeps no epochs and begins in epoch 0."""
    survey = disk.survey
    return survey.accepted.is_absent and survey.current.is_absent and survey.last_zxid < 1 << 32 and not survey.is_empty


def _view_of_file(path: Path) -> View:
    try:
        text = read_bytes(path, CONFIGURATION).decode("utf-8")
    except (OSError, TooLargeError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise RecoverError(f"--config {path}: it cannot be read ({why}); name a zoo.cfg or a dynamic file") from None

    def beside(name: str) -> str | None:
        try:
            return read_bytes(path.parent / Path(name).name, CONFIGURATION).decode("utf-8", "replace")
        except (OSError, TooLargeError):
            return None

    config = parse_zoo_cfg(text, str(path), read=beside, complete=False)
    if not config.view.voters:
        raise RecoverError(f"--config {path}: it names no server; write its server.N lines, or use --voters")
    return config.view


def _views_in_data(disks: Sequence[SurvivingDisk]) -> list[tuple[View, str]]:
    """The view of the newest configuration in the data."""
    configurations = [(views, disk) for disk in disks for views in disk.survey.configurations]
    for views, disk in sorted(configurations, key=lambda item: item[0].zxid, reverse=True):
        source = f"/zookeeper/config in {views.place} of {disk.name}"
        try:
            view = view_in(views.text, source)
        except ConfigError:
            continue
        if view.voters:
            return [(view, source)]
    return []


def _views_in_files(disks: Sequence[SurvivingDisk]) -> list[tuple[View, str]]:
    """The views of the dynamic files (the newest one and `.next` of each disk), and of the zoo.cfg beside a dataDir."""
    found = []
    for disk in disks:
        versions = [file.version for file in disk.survey.dynamic_files if file.version is not None]
        newest = max(versions, default=None)
        for file in disk.survey.dynamic_files:
            if file.text is not None and file.version in (newest, None):
                found.append((file.text, file.name))
        zoo_cfg = disk.directory.data.parent / "zoo.cfg"
        if not versions and zoo_cfg.is_file():
            try:
                found.append((read_bytes(zoo_cfg, CONFIGURATION).decode("utf-8", "replace"), str(zoo_cfg)))
            except (OSError, TooLargeError):
                continue
    views = []
    for text, name in found:
        try:
            view = parse_zoo_cfg(text, name, complete=False).view
        except ConfigError:
            continue
        if view.voters:
            views.append((view, name))
    return views
