"""The how-to about the recipes: its blocks are run literally, at an ensemble of ours."""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.ensemble import Ensemble
from tests.node.patience import PATIENT

PAGE = Path(__file__).parents[2] / "docs" / "how-to-use-the-recipes.md"
BLOCK = re.compile(r"^```py\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
GUARDED = "class Guarded"
WAIT = 20.0


def printer_of(guarded: Any) -> Any:
    """Return the page's printer, guarded as the page describes; there is work for page 3 once, for page 4 twice."""

    class Printer(guarded):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.printed: list[tuple[str, int]] = []
            self._work = iter([True, False, True, True])
            self._done = threading.Event()

        def write(self, page: str, token: int) -> str:
            super().write(page, token)
            self.printed.append((page, token))
            if [page for page, _ in self.printed].count("page 4") == 2:
                self._done.set()
            return page

        def has_work(self) -> bool:
            return next(self._work, False)

        def wait_until_done(self) -> None:
            assert self._done.wait(WAIT)

    return Printer()


def test_the_code_of_the_page_does_what_it_says(launch: Callable[..., Ensemble]) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    (guarded,) = [block for block in blocks if block.startswith(GUARDED)]
    namespace: dict[str, Any] = {"hosts": launch(["node"] * 3, **PATIENT).connect_string}
    exec(compile(guarded, str(PAGE), "exec"), namespace)
    namespace["printer"] = printer = printer_of(namespace["Guarded"])
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), namespace)
    finally:
        if "client" in namespace:
            namespace["client"].stop()
            namespace["client"].close()
    pages, tokens = zip(*printer.printed, strict=True)
    assert list(pages) == ["page 1", "page 2", "page 3", "page 4", "page 4", "page 5", "page 6"]
    assert namespace["pages"] == "page 5"
    assert list(tokens) == sorted(tokens)
    with pytest.raises(ValueError, match="old"):
        printer.write("page 7", tokens[0])
