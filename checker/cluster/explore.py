"""Explores a model on a Ray cluster.

The files of the parts are in a folder that all machines share (`Checkpoint.folder`), or in a temporary folder of each
machine. In the second case a lost part can be replaced only on its machine.
"""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from checker.cluster import Ray
from checker.cluster.distributed_search import SAVE_EVERY, DistributedSearch
from checker.cluster.ray_transport import RayTransport, connected
from checker.cluster.saved_search import SavedFolder
from checker.cluster.search_part import SearchPart
from checker.engine.checkpoint import Checkpoint
from checker.engine.model import Model, ModelError
from checker.engine.result import SEED, Exploration, Limits

HERE = Ray()


class PartMaker:
    """Makes the parts of a search, each in its process; a part keeps its files below `folder`."""

    def __init__(self, model: Model, seed: int, folder: Path) -> None:
        self._model, self._seed, self.folder = model, seed, folder

    def __call__(self, number: int, parts: int) -> SearchPart:
        """The part with this number."""
        return SearchPart(self._model, number, parts, self._seed, self.folder / f"part-{number}")


def explore(
    model: Model,
    limits: Limits = Limits(),
    *,
    workers: Ray = HERE,
    until_witnessed: bool = False,
    progress: Callable[[Exploration], None] | None = None,
    checkpoint: Checkpoint | None = None,
    seed: int = SEED,
) -> Exploration:
    """Explore a model on a cluster, with the result of `search.explore`. Raises ModelError and CheckpointError.

    Each worker is a process with its own tables. The limit of memory holds for each machine: the growth of its workers
    together. The limit of work counts the calls of all workers, so that it depends on their number. Properties of
    liveness are refused. A lost worker is replaced, and the result is the same. `checkpoint` is on storage that all
    machines share; a search is saved at the beginning of a level.

        exploration = explore(model, Limits(seconds=600.0), workers=Ray("10.0.0.5:6379"))
    """
    if model.liveness:
        raise ModelError(
            f"{model.liveness[0].name!r} is a property of liveness, which is judged on one machine: use --workers N"
        )
    with connected(workers) as ray, _folder(checkpoint) as folder:
        maker = PartMaker(model, seed, folder)
        is_shared = checkpoint is not None or workers.address is None
        transport = RayTransport(ray, maker, workers.processes, is_shared=is_shared)
        saved = None
        try:
            if checkpoint is not None:
                _check_shared(transport, folder)
                saved = SavedFolder(checkpoint, model, seed)
            search = DistributedSearch(
                model,
                limits,
                transport,
                until_witnessed=until_witnessed,
                progress=progress,
                seed=seed,
                save_every=SAVE_EVERY if checkpoint is None else min(SAVE_EVERY, checkpoint.every),
                saved=saved,
            )
            return search.run()
        finally:
            if saved is None or not saved.is_needed:
                transport.remove_files()
            transport.close()
            if saved is not None:
                saved.close()


@contextmanager
def _folder(checkpoint: Checkpoint | None) -> Iterator[Path]:
    """The folder for the files of the parts: a shared one, or the same temporary name on each machine."""
    if checkpoint is not None:
        yield checkpoint.folder.absolute()
        return
    folder = Path(tempfile.gettempdir()) / f"quorate-parts-{uuid.uuid4().hex}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_shared(transport: RayTransport, folder: Path) -> None:
    """Raise ModelError if a machine of the cluster does not see the folder of the checkpoint."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".shared-") as file:
            answers = transport.all("sees", Path(file.name))
    except OSError as error:
        raise ModelError(f"{folder}: no checkpoint can be kept there ({error.strerror or error})") from None
    missing = [machine for machine, sees in zip(transport.machines(), answers, strict=True) if not sees]
    if missing:
        raise ModelError(
            f"{folder}: the machine {missing[0]} does not see this folder; name a folder on storage that all machines "
            "of the cluster share, or leave --checkpoint out"
        )
