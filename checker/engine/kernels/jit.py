"""The compilation of kernels: two decorators, four intrinsics, and the folder of the compiled code.

Kernels allocate nothing and own nothing: every array is created by the caller and outlives the call. Numba's reference
counting, which would be the largest single cost, can therefore be left out (`_nrt=False`). A test searches for it in
the generated code, since the option is a private one of Numba's.

Importing this module sets the folder of Numba's cache, also if Numba is imported already. Numba recompiles a
kernel if the kernel's own file changed, but not if the file of an inlined function did. Each state of all these files
therefore has a separate folder.

With QUORATE_DEBUG=1 in the environment kernels check every index; without it, a wrong index crashes the process
silently.
"""

import atexit
import gc
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from checker.engine.process import Interrupts, check_address_space
from spec.packages import DISTRIBUTION

LOADED, COMPILED = 260_000_000, 550_000_000
"""The bytes of address space that compiled kernels need with their libraries, and that their compilation needs."""
DEBUG = os.environ.get("QUORATE_DEBUG", "") not in ("", "0")


def digest(folder: Path) -> str:
    """The identity of the kernels in a folder: eight digits of the SHA-256 of their sources."""
    sources = sha256()
    for file in sorted([*folder.glob("*.py")]):
        sources.update(file.read_bytes())
    return sources.hexdigest()[:8]


def cache_folder() -> Path:
    """A folder for these kernels, this version of Numba and of Python; in a temporary place without a home to write."""
    try:
        release = version(DISTRIBUTION)
    except PackageNotFoundError:
        release = "source"
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    name = f"{release}-{digest(Path(__file__).parent)}-numba{version('numba')}-{python}"
    name += "-debug" if DEBUG else ""
    with suppress(OSError, RuntimeError):  # there may be no home at all
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return _writable(base / "quorate" / name)
    with suppress(OSError):
        return _writable(_private(Path(tempfile.gettempdir()) / f"quorate-{os.getuid()}") / name)
    folder = tempfile.mkdtemp(prefix="quorate-cache-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _writable(folder: Path) -> Path:
    """The folder, made unless it exists. Raises OSError if no file can be there."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _private(folder: Path) -> Path:
    """The folder, made unless it exists. Raises OSError unless it is this user's alone: its files are executed."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(folder)
    return folder


def is_compiled(*, with_graph: bool = False, with_walks: bool = False) -> bool:
    """Whether compiled kernels are in the cache, so that the first exploration need not wait for the compiler.

    `with_graph`: also those that judge liveness. `with_walks`: also those of random walks.
    """
    names = ["search_kernels.expand", *(["graph_kernels.components"] if with_graph else [])]
    names += ["walk_kernels.walk"] if with_walks else []
    return all(any(Path(os.environ["NUMBA_CACHE_DIR"]).rglob(f"{name}-*.nbc")) for name in names)


os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))
check_address_space(LOADED if is_compiled() else COMPILED)

import numba  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba.core import types  # noqa: E402
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

_config: Any = numba.config
_config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]  # Numba reads the environment when it is imported
_njit: Any = numba.njit  # its types do not know the private option
_library: Any = JITCodeLibrary
_compiler: Any = Compiler

# By default Numba also compiles entry points for calls from C, and for calls of inlined functions from Python. They are
# unused here, and took a quarter of the time.
OPTIONS = {"nogil": True, "boundscheck": DEBUG, "_nrt": False, "no_cfunc_wrapper": True}


class NoEnvironments:
    """Takes the place of Numba's code generator for functions that have no Python objects."""

    def set_env(self, name: str, environment: Any) -> None:
        """Forget the environment, which only boxed values need."""


class LinkedLibrary(_library):  # type: ignore[misc]
    """The code of a function that only kernels call: it is linked into each of them, and optimised there alone.

    Numba would optimise it, translate it to machine code, and do both again for each function between it and a kernel.
    """

    def finalize(self) -> None:
        """Link what this function calls."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    @property
    def codegen(self) -> NoEnvironments:
        """No environment is stored, since this function has no machine code that could find it."""
        return NoEnvironments()

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """0: nothing calls this function from Python."""
        return 0


class LinkedCompiler(_compiler):  # type: ignore[misc]
    """Numba's compiler for a function whose code is a `LinkedLibrary`."""

    def define_pipelines(self) -> Any:
        """Numba's own passes, which write to this library."""
        self.state.library = LinkedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


@contextmanager
def collector_off() -> Iterator[None]:
    """Pause the collector of cyclic garbage: the compiler creates many objects and keeps nearly all of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that is called from Python; the result is cached on disk.

    A Ctrl-C waits until the kernel is compiled, or loaded from the cache: in the middle of this, an exception can make
    LLVM free a module twice, which ends the process. Numba's dispatcher calls `_compile_for_args` for new types only.
    """
    dispatcher = _njit(cache=True, **OPTIONS)(function)
    compile_for_args = dispatcher._compile_for_args

    def deferred(*arguments: Any, **named: Any) -> Any:
        with Interrupts(), collector_off():
            return compile_for_args(*arguments, **named)

    dispatcher._compile_for_args = deferred
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function that is called only by kernels; it is inlined into each of them."""
    return _njit(forceinline=True, no_cpython_wrapper=True, pipeline_class=LinkedCompiler, **OPTIONS)(function)


def _prefetch(typingctx: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Ask for the cache line of `array[index]`; the load that follows some iterations later finds it near."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [address.type], ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        )
        builder.call(function, [address, flag(1), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _ones_below(typingctx: Any, word: Any) -> Any:  # noqa: ARG001
    """The number of the lowest bit of a word that is set (64 for none)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


def _five_bytes(context: Any, builder: Any, array: Any, kind: Any, slot: Any) -> Any:
    """The address of the bytes 5 * slot and later of an array of bytes."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [builder.mul(slot, ir.IntType(64)(5))])


def _load_packed(typingctx: Any, array: Any, slot: Any) -> Any:  # noqa: ARG001
    """The five bytes of a slot as a number. The array needs three bytes after the last slot."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _five_bytes(context, builder, args[0], signature.args[0], args[1])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)
        return builder.and_(word, ir.IntType(64)((1 << 40) - 1))

    return types.uint64(array, types.uint64), generate


def _store_packed(typingctx: Any, array: Any, slot: Any, word: Any) -> Any:  # noqa: ARG001
    """Store a number of 40 bits as the five bytes of a slot."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _five_bytes(context, builder, args[0], signature.args[0], args[1])
        low, high = ir.IntType(32), ir.IntType(8)
        builder.store(builder.trunc(args[2], low), builder.bitcast(address, low.as_pointer()), align=1)
        rest = builder.trunc(builder.lshr(args[2], ir.IntType(64)(32)), high)
        builder.store(rest, builder.gep(address, [ir.IntType(64)(4)]), align=1)
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.uint64), generate


_intrinsic: Any = intrinsic
load_packed: Any = _intrinsic(_load_packed)
store_packed: Any = _intrinsic(_store_packed)
prefetch: Any = _intrinsic(_prefetch)
ones_below: Any = _intrinsic(_ones_below)
