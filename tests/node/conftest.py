"""Ensembles of live servers; tests are skipped or fail where a kind of server cannot be started."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import KINDS, Ensemble


def need(kind: str) -> None:
    """Skip the test if this kind of server cannot be started; on CI, where it is required, fail."""
    if reason := KINDS[kind]():
        if os.environ.get("CI") == "true":
            pytest.fail(f"kind {kind!r}: {reason}", pytrace=False)
        pytest.skip(f"kind {kind!r}: {reason}")


Launch = Callable[..., Ensemble]


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """`launch(kinds, **options)` returns an ensemble that serves until the end of the module's tests."""
    with launching(tmp_path_factory) as start:
        yield start


@contextmanager
def launching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Yield `launch(kinds, **options)`, which returns an ensemble that serves until this context ends.

    `first` is the id of the server that becomes the leader. It and the server with the lowest id, which must be a
    voter, are started before the others: an election needs both, and they vote for the higher id. If all started
    together, or while the first one is LOOKING, the others would wait for it for at most 0.2 s (`finalizeWait`), and a
    busy machine may delay it for longer.
    """
    launched: list[Ensemble] = []

    def start(kinds: list[str], first: int | None = None, **options: object) -> Ensemble:
        for kind in kinds:
            need(kind)
        directory: Path = tmp_path_factory.mktemp("ensemble")
        ensemble = Ensemble(kinds, directory, **options)  # type: ignore[arg-type]
        launched.append(ensemble)
        if first is not None:
            for sid in (first, ensemble.sids[0]):
                ensemble.start(sid)
            ensemble.wait_serving()
        ensemble.start_all()
        return ensemble

    try:
        yield start
    finally:
        for ensemble in launched:
            ensemble.close()
