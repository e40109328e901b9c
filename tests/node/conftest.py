"""Ensembles of live servers; tests are skipped or fail where a kind of server cannot be started."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.ensemble import Ensemble, releases_of
from harness.releases import DEBIAN, MAVEN
from tests.node.patience import PATIENT
from tests.support.programs import need_kind

if TYPE_CHECKING:
    from tests.node.recipes import World

NEWEST = MAVEN[-1]
QUICK_WITH_DEBIANS = pytest.mark.parametrize("release", [DEBIAN, pytest.param(NEWEST, marks=pytest.mark.slow)])
"""The mark of a test that takes long at the newest release: it is slow there."""


Launch = Callable[..., Ensemble]


@pytest.fixture(scope="module", params=[DEBIAN, NEWEST])
def release(request: pytest.FixtureRequest) -> str:
    """The release of the real servers: Debian's, and the newest one that the harness knows."""
    return str(request.param)


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """`launch(kinds, **options)` returns an ensemble that serves until the end of the module's tests."""
    with launching(tmp_path_factory) as start:
        yield start


@contextmanager
def launching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Yield `launch(kinds, **options)`, which returns an ensemble that serves until this context ends.

    `first` is the id of the server that becomes the leader (`Ensemble.start_led_by`).
    """
    launched: list[Ensemble] = []

    def start(
        kinds: list[str], first: int | None = None, release: str | Mapping[int, str] = DEBIAN, **options: object
    ) -> Ensemble:
        for kind, each in zip(kinds, releases_of(range(1, len(kinds) + 1), release).values(), strict=True):
            need_kind(kind, each)
        directory: Path = tmp_path_factory.mktemp("ensemble")
        ensemble = Ensemble(kinds, directory, release=release, **options)  # type: ignore[arg-type]
        launched.append(ensemble)
        if first is None:
            ensemble.start_all()
        else:
            ensemble.start_led_by(first)
        return ensemble

    try:
        yield start
    finally:
        for ensemble in launched:
            ensemble.shut_down()


@pytest.fixture(scope="module", params=["node", "real"])
def ensemble(request: pytest.FixtureRequest, launch: Launch) -> Ensemble:
    """Three servers of one kind, for tests of recipes."""
    return launch([request.param] * 3, **PATIENT)


@pytest.fixture
def at(ensemble: Ensemble, request: pytest.FixtureRequest) -> Iterator["World"]:
    """The ensemble, with clients below a znode of the test."""
    from tests.node.recipes import world  # it needs kazoo

    with world(ensemble, f"/{request.node.name.split('[')[0]}") as made:
        yield made
