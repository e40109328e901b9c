"""The notebooks of the manual: their cells run in order, and print and show what is stored with them.

No notebook program takes part: the code of the cells is executed, and the value of a last expression is shown as a
notebook shows it. The time of a search is left out of the comparison. `REWRITE_GOLDEN=1` stores the actual outputs
instead; read the diff.
"""

import ast
import contextlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
EACH_NOTEBOOK = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
REWRITE = bool(os.environ.get("REWRITE_GOLDEN"))
SECONDS = re.compile(r"\d+\.\d\d s\b")

Object = dict[str, Any]


def run(source: str, name: str, namespace: Object) -> list[Object]:
    """Execute a cell, and return its outputs in the format of notebooks; the execution count is left out."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last else None
    outputs: list[Object] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/html": value._repr_html_().splitlines(keepends=True), "text/plain": [f"<{type(value).__name__}>"]}
        outputs.append({"data": data, "metadata": {}, "output_type": "execute_result"})
    return outputs


def code_cells(notebook: Object) -> list[Object]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@EACH_NOTEBOOK
def test_the_cells_print_and_show_what_is_stored(path: Path) -> None:
    notebook, namespace = json.loads(path.read_text("utf-8")), {"__name__": path.stem}
    outputs = [run("".join(cell["source"]), path.name, namespace) for cell in code_cells(notebook)]
    if REWRITE:
        store(path, notebook, outputs)
        return
    for number, (cell, actual) in enumerate(zip(code_cells(notebook), outputs, strict=True), 1):
        expected = [
            {key: part for key, part in output.items() if key != "execution_count"} for output in cell["outputs"]
        ]
        assert timeless(actual) == timeless(expected), f"{path.name}, code cell {number}: it shows something else"


def store(path: Path, notebook: Object, outputs: list[list[Object]]) -> None:
    for number, (cell, actual) in enumerate(zip(code_cells(notebook), outputs, strict=True), 1):
        numbered = {"execution_count": number}
        cell["execution_count"] = number
        cell["outputs"] = [output | (numbered if "data" in output else {}) for output in actual]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


def timeless(outputs: list[Object]) -> Any:
    return json.loads(SECONDS.sub("0.00 s", json.dumps(outputs)))


@EACH_NOTEBOOK
def test_a_notebook_goes_from_a_model_and_a_violation_to_a_picture_and_an_exhausted_space(path: Path) -> None:
    shown = "".join(
        "".join(output["data"]["text/html"])
        for cell in code_cells(json.loads(path.read_text("utf-8")))
        for output in cell["outputs"]
        if "data" in output
    )
    places = [shown.index(words) for words in ("<details", "VIOLATED at depth", "<svg", "space exhausted")]
    assert places == sorted(places)


def test_there_is_a_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == ["lease.ipynb"]


def test_a_cell_that_shows_something_else_is_noticed() -> None:
    assert run("print(1 + 1)", "cell", {}) == [{"name": "stdout", "output_type": "stream", "text": ["2\n"]}]
    assert run("x = 1", "cell", {}) == []
    assert timeless([{"text": "3 states, 0.25 s"}]) == timeless([{"text": "3 states, 0.31 s"}])
    assert timeless([{"text": "3 states, 0.25 s"}]) != timeless([{"text": "4 states, 0.25 s"}])
