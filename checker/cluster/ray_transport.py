"""Ray as the transport of a search: each part is an actor of Ray. This is the only module that imports Ray.

Rules:

- A Ray that is started here listens on the loopback interface only, sends no usage statistics, accepts only clients
  with a token of its own, and keeps its files in a temporary folder that is removed at the end.
- A cluster that is joined is left as it was.
- Results that are passed to other parts stay in Ray's object store; the driver has only references to them.
"""

import os
import secrets
import shutil
import socket
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

import psutil

from checker.cluster.search_part import SearchPart
from checker.engine.model import ModelError
from checker.engine.process import Interrupts
from checker.engine.search import LOST, PartLostError
from spec.packages import needed
from spec.text import required_integer

STORE = 2 << 30  # bytes of the object store of a Ray that is started here, or a quarter of the free memory
CONNECTING = 10  # seconds
STARTING = 120.0  # seconds until all workers must have started
LONGEST_FOLDER = 20  # characters; a socket has at most 107, and Ray adds 65
ANSWER = 60.0  # seconds after which a silent part counts as lost
HERE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's switch for the loopback interface, on every system
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
}
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
}
"""Ray prints nothing, since standard output has the report and a loss is in the result."""

PACKAGES = ("checker", "spec", "refimpl")
USER_MODULE = "quorate_model_"

Answer = TypeVar("Answer")
Ref = Any
"""The result of a call, which may not exist yet."""


class RayPlace(Protocol):
    """The address of a cluster and the number of processes there; `checker.cluster.Ray` is one."""

    @property
    def address(self) -> str | None:
        """The address of the head; None for a Ray that is started here."""

    @property
    def processes(self) -> int | None:
        """The number of workers; None for one on each core."""


def installed() -> ModuleType:
    """The module of Ray. Raises ModelError without it."""
    try:
        import ray  # noqa: PLC0415 (an extra, and slow to load)
    except ImportError:
        raise ModelError(needed("ray", "a search on a cluster")) from None
    module: ModuleType = ray
    return module


@contextmanager
def connected(where: RayPlace) -> Iterator[ModuleType]:
    """Ray, connected to a cluster, or started on this machine; disconnected or stopped at the end.

    Raises ModelError.
    """
    os.environ |= {name: value for name, value in QUIET.items() if name not in os.environ}
    if where.address is None:
        with _started(where) as ray:
            yield ray
        return
    _check_reachable(where.address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = installed()
    is_own = not ray.is_initialized()
    try:
        if is_own:
            try:
                with Interrupts():  # as below
                    ray.init(address=where.address, log_to_driver=False, logging_level="ERROR")
            except Exception as error:
                raise _unreachable(where.address, error) from None
        yield ray
    finally:
        if is_own:
            ray.shutdown()


@contextmanager
def _started(where: RayPlace) -> Iterator[ModuleType]:
    before = {name: os.environ.get(name) for name in (*HERE, "RAY_AUTH_TOKEN")}
    os.environ |= {**HERE, "RAY_AUTH_TOKEN": _token()}
    folder = tempfile.mkdtemp(prefix="quorate-ray-", dir=_short_folder())
    try:
        ray = installed()
        if ray.is_initialized():
            raise ModelError("Ray is already started in this process; name its address: ray:auto")
        try:
            with Interrupts():  # one inside Ray's start would end this process by a segmentation fault
                ray.init(
                    num_cpus=where.processes or os.cpu_count() or 1,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="ERROR",
                    object_store_memory=max(100 << 20, min(STORE, psutil.virtual_memory().available // 4)),
                    _temp_dir=folder,
                )
        except Exception as error:
            raise ModelError(f"Ray does not start on this machine: {_first_line(error)}") from error
        else:
            yield ray
        finally:
            ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@cache
def _token() -> str:
    """The token of each Ray that is started here; one for the whole process, since Ray reads it once."""
    return secrets.token_hex(32)


def _short_folder() -> str:
    """The folder for temporary files, or /tmp if Ray's sockets there would have names that are too long."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= LONGEST_FOLDER else "/tmp"


def _first_line(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error).strip() or type(error).__name__).splitlines()[0]


def _check_reachable(address: str) -> None:
    """Raise ModelError if nobody listens at an address; Ray itself would try for a long time."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), required_integer(port)), CONNECTING).close()
    except OSError as error:
        raise _unreachable(address, error) from None


def _unreachable(address: str, error: Exception) -> ModelError:
    return ModelError(
        f"there is no Ray cluster at {address} ({_first_line(error)}); start its head with `ray start --head`, "
        "or use --workers ray for this machine alone"
    )


class RayTransport:
    """The parts of a search as actors of Ray, one for each core of the cluster unless a number is given.

    A result may be passed to the call of another part, and goes there directly. A part carries out its calls in the
    order in which they were started.

    `make` is called in the actor with the number of the part and the number of parts. `is_shared` says that each
    machine reaches the saved files of all parts; otherwise a lost part is replaced on its machine only.
    """

    def __init__(
        self, ray: Any, make: Callable[[int, int], SearchPart], processes: int | None, *, is_shared: bool
    ) -> None:
        self._ray, self._make, self._is_shared = ray, make, is_shared
        self.parts = processes or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._class = ray.remote(_Host)
        self._actors: list[Any] = [None] * self.parts
        self._nodes: list[str] = [""] * self.parts
        self._named: list[str] = [""] * self.parts
        self._start(range(self.parts))

    @property
    def description(self) -> str:
        """The number of machines."""
        machines = len(set(self._nodes))
        return "one machine, with Ray" if machines == 1 else f"{machines} machines, with Ray"

    def call(self, part: int, method: str, *arguments: Any, returns: int = 1) -> list[Ref]:
        """Start a method of a part; return a reference for each of its results. Raises PartLostError."""
        try:
            refs = self._actors[part].call.options(num_returns=returns).remote(method, *arguments)
        except self._ray.exceptions.RayActorError as error:
            raise PartLostError(str(error)) from None
        return [refs] if returns == 1 else list(refs)

    def get(self, refs: Sequence[Ref]) -> list[Any]:
        """Wait for results. Raises PartLostError, and the exceptions of the methods."""
        return _results(self._ray, refs)

    def replace_lost(self) -> list[int]:
        """Start an actor for each that does not answer. Raises ModelError without a machine for it."""
        lost = [part for part in range(self.parts) if not self._answers(part)]
        self._start(lost)
        return lost

    def machines(self) -> list[str]:
        """The name of the machine of each part."""
        return list(self._named)

    def remove_files(self) -> None:
        """Remove the files of all parts that answer."""
        with suppress(Exception):  # a part may be gone; its files are temporary
            refs = [self.call(part, "remove")[0] for part in range(self.parts)]
            self._ray.wait(refs, num_returns=len(refs), timeout=ANSWER)

    def processes(self) -> list[int]:
        """The process of each part."""
        return self.get([self.call(part, "pid")[0] for part in range(self.parts)])

    def close(self) -> None:
        """End all actors."""
        for actor in self._actors:
            if actor is not None:
                with suppress(Exception):  # it may be gone
                    self._ray.kill(actor)

    def _answers(self, part: int) -> bool:
        try:
            self._ray.get(self._actors[part].call.remote("pid"), timeout=ANSWER)
        except self._ray.exceptions.RayError:
            with suppress(Exception):  # it may be gone
                self._ray.kill(self._actors[part])
            return False
        return True

    def _start(self, parts: Iterable[int]) -> None:
        """Start the actors of these parts; a part that had a machine starts there if it can."""
        _send_user_modules(self._ray)
        strategies: Any = import_module("ray.util.scheduling_strategies")
        maker = self._ray.put(self._make)
        numbers = list(parts)
        alive = {machine["NodeID"] for machine in self._ray.nodes() if machine["Alive"]}
        for part in numbers:
            node = self._nodes[part]
            options: dict[str, Any] = {
                "num_cpus": 0 if node else 1,  # a new worker may need the core of another while one machine is gone
                "max_restarts": 0,
                "max_task_retries": 0,
                "runtime_env": {"env_vars": {"PYTHONHASHSEED": "0"}},
            }
            if node and not self._is_shared and node not in alive:
                raise ModelError(
                    f"the machine {self._named[part]} of worker {part + 1} is gone, and its files with it; name a "
                    "folder on storage that all machines share: --checkpoint DIR"
                )
            if node in alive:
                options["scheduling_strategy"] = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
            else:
                options["scheduling_strategy"] = "SPREAD"
            self._actors[part] = self._class.options(**options).remote(maker, part, self.parts)
        places = [self.call(part, "place")[0] for part in numbers]
        _, missing = self._ray.wait(places, num_returns=len(places), timeout=STARTING) if places else ([], [])
        if missing:
            raise ModelError(
                f"{len(missing)} of {self.parts} workers did not start in {STARTING:.0f} s; are the cores of the Ray "
                "cluster in use by others?"
            )
        for part, (node, name) in zip(numbers, self.get(places), strict=True):
            self._nodes[part], self._named[part] = node, name


class _Host:
    def __init__(self, make: Callable[[int, int], SearchPart], number: int, parts: int) -> None:
        self._part = make(number, parts)

    def call(self, method: str, *arguments: Any) -> Any:
        if method == "place":
            import ray  # noqa: PLC0415 (in the actor)

            return str(ray.get_runtime_context().get_node_id()), socket.gethostname()
        return getattr(self._part, method)(*arguments)


def _results(ray: Any, refs: Sequence[Ref]) -> list[Any]:
    """Wait for results. Raises PartLostError, and the exceptions of the calls."""
    errors = ray.exceptions
    try:
        results: list[Any] = ray.get(list(refs))
    except errors.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, errors.RayError):
            raise PartLostError(str(cause)) from None
        if isinstance(cause, ModelError | OSError | MemoryError):
            raise type(cause)(*cause.args) from None
        raise
    except errors.RayError as error:
        raise PartLostError(str(error)) from None
    return results


def _send_user_modules(ray: Any) -> None:
    """Send functions and classes of user files by value, since the processes of a cluster cannot import these files."""
    installed_in = {Path(path).resolve() for path in sysconfig.get_paths().values()}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or name.partition(".")[0] in ("__main__", "__mp_main__", *PACKAGES):
            continue
        folders = set(Path(file).resolve().parents)
        if not folders & installed_in or name.startswith(USER_MODULE):
            with suppress(ValueError):  # a module that is not in `sys.modules` under its own name
                ray.cloudpickle.register_pickle_by_value(module)


def ray_calls(function: Callable[[int], Answer], seeds: Iterable[int], where: RayPlace) -> Iterator[tuple[int, Answer]]:
    """Call a function for each seed on a cluster, as `checker.swarm.search.for_each_seed`. Raises ModelError."""
    with connected(where) as ray:
        most = 2 * (where.processes or max(1, int(ray.cluster_resources().get("CPU", 1))))
        _send_user_modules(ray)
        # Ray takes functions only, and no other objects that can be called.
        remote = ray.remote(lambda seed: function(seed)).options(num_cpus=1, max_retries=3)  # noqa: PLW0108
        waiting: dict[Any, int] = {}
        queue = iter(seeds)
        try:
            while True:
                for seed in islice(queue, most - len(waiting)):
                    waiting[remote.remote(seed)] = seed
                if not waiting:
                    return
                ready, _ = ray.wait(list(waiting))
                for call, answer in zip(ready, _results(ray, ready), strict=True):
                    yield waiting.pop(call), answer
        except PartLostError:
            raise ModelError(LOST) from None
        finally:
            for call in waiting:
                ray.cancel(call, force=True)
