"""Ctrl-C and the collector of garbage while a kernel is compiled or loaded.

An exception in the middle of it can make LLVM free a module twice.
"""

import gc
import signal
from typing import Any

import pytest

from checker.engine.kernels import jit


@pytest.fixture
def usual_handler() -> Any:
    """Python's own handler of Ctrl-C, also where the tests were started with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_handler")
def test_an_interrupt_waits_until_a_kernel_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    class Dispatcher:
        """A compiler that gets a Ctrl-C in the middle of its work."""

        def _compile_for_args(self, *_: Any) -> None:
            signal.raise_signal(signal.SIGINT)
            ended.append("compiled")

    monkeypatch.setattr(jit, "_njit", lambda **_: lambda _: Dispatcher())
    made = jit.kernel(len)
    with pytest.raises(KeyboardInterrupt):
        made._compile_for_args(1)
    assert ended == ["compiled"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_pauses_and_is_afterwards_as_before(monkeypatch: pytest.MonkeyPatch, enabled: bool) -> None:
    during = []

    class Dispatcher:
        """A compiler that fails."""

        def _compile_for_args(self, *_: Any) -> None:
            during.append(gc.isenabled())
            raise ValueError

    monkeypatch.setattr(jit, "_njit", lambda **_: lambda _: Dispatcher())
    if not enabled:
        gc.disable()
    try:
        with pytest.raises(ValueError, match=r"^$"):
            jit.kernel(len)._compile_for_args(1)
        assert (during, gc.isenabled()) == ([False], enabled)
    finally:
        gc.enable()
