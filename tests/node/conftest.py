"""Ensembles of live servers, and what is done where a kind of server cannot be started."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.servers import KINDS, Ensemble
from benchmarks.servers.processes import wait_until


def need(kind: str) -> None:
    """Skip the test where this kind of server cannot be started; on CI, where it must be there, fail."""
    if reason := KINDS[kind]():
        if os.environ.get("CI") == "true":
            pytest.fail(f"kind {kind!r}: {reason}", pytrace=False)
        pytest.skip(f"kind {kind!r}: {reason}")


Launch = Callable[..., Ensemble]


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Gives `launch(kinds, **options)`: an ensemble that serves; it is ended with the module's tests.

    `first` is the id of a server that must look for a leader before the others start.
    """
    launched: list[Ensemble] = []

    def start(kinds: list[str], first: int | None = None, **options: object) -> Ensemble:
        for kind in kinds:
            need(kind)
        directory: Path = tmp_path_factory.mktemp("ensemble")
        ensemble = Ensemble(kinds, directory, **options)  # type: ignore[arg-type]
        launched.append(ensemble)
        if first is not None:
            ensemble.start(first)
            log = directory / f"server-{first}" / "log.txt"
            wait_until(lambda: "LOOKING" in log.read_text("utf-8", "replace"), 30, f"server {first} is LOOKING", log)
        ensemble.start_all()
        return ensemble

    yield start
    for ensemble in launched:
        ensemble.close()
