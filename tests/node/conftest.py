"""Ensembles of live servers, and what is done where a kind of server cannot be started."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import KINDS, Ensemble


def need(kind: str) -> None:
    """Skip the test where this kind of server cannot be started; on CI, where it must be there, fail."""
    if reason := KINDS[kind]():
        if os.environ.get("CI") == "true":
            pytest.fail(f"kind {kind!r}: {reason}", pytrace=False)
        pytest.skip(f"kind {kind!r}: {reason}")


Launch = Callable[..., Ensemble]


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Gives `launch(kinds, **options)`: an ensemble that serves; it is ended with the module's tests."""
    with launching(tmp_path_factory) as start:
        yield start


@contextmanager
def launching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Gives `launch(kinds, **options)`: an ensemble that serves, until this ends.

    `first` is the id of a server that is to lead. It and the server with the lowest id, which must vote, are started
    by themselves: a vote needs both, and they vote for the higher id. With all at once, or while this one looks, the
    others would not wait for it for longer than 0.2 s (`finalizeWait`), as little as a busy machine may keep it from
    running.
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
