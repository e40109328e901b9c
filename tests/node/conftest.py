"""Ensembles of live servers, and what is done where a kind of server cannot be started."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.servers import KINDS, Ensemble


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
    launched: list[Ensemble] = []

    def start(kinds: list[str], **options: object) -> Ensemble:
        for kind in kinds:
            need(kind)
        directory: Path = tmp_path_factory.mktemp("ensemble")
        ensemble = Ensemble(kinds, directory, **options)  # type: ignore[arg-type]
        launched.append(ensemble)
        ensemble.start_all()
        return ensemble

    yield start
    for ensemble in launched:
        ensemble.close()
