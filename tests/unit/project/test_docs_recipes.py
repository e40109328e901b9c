"""The tutorial about recipes is correct: its runs show the checker's output, its lines are those of the recipes.

A block `sh` with a run of the checker is followed by a part of its output: for a finding, the finding and its steps;
for a picture, the whole output; for a run that passes, the verdict and the properties. `REWRITE_GOLDEN=1` writes the
actual output into the page instead; read the diff. A block `py` that begins with the name of a file is in that file.
"""

import os
import re
import shlex
import textwrap
from functools import cache
from pathlib import Path

import pytest

from checker.cli.main import main
from checker.scenario.schema import Common, RecipeScenario, ServiceScenario

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "tutorial-recipes.md"
REWRITE = bool(os.environ.get("REWRITE_GOLDEN"))
RUN = re.compile(
    r"^```sh\nquorate (?P<line>run [^\n]*)\n```\n\n```(?P<kind>text|mermaid)\n(?P<output>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
QUOTED = re.compile(r"^```py\n# (?P<file>spec/\S+\.py)\n(?P<code>.*?)^```\n", re.MULTILINE | re.DOTALL)
MERMAID = "--format mermaid"
WIDEST = 135  # characters of a line


@cache
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def runs() -> list[str]:
    return [found["line"] for found in RUN.finditer(text())]


def printed(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the part of the output of one command that the page shows."""
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(line)) == 0, f"{line}: not as expected"
    output = capsys.readouterr().out
    if MERMAID in line:
        return output[output.index("sequenceDiagram") :].rstrip() + "\n"
    sections = output.split("\n\n")
    table = next((place for place, each in enumerate(sections) if each.startswith("step |")), None)
    if table is not None:
        heading = "\n".join(sections[table - 1].splitlines()[:2])
        return f"{heading}\n\n{sections[table]}\n"
    properties = next(each for each in sections if each.startswith("properties\n"))
    return f"{sections[0]}\n\n{properties}\n"


@pytest.mark.parametrize("line", runs())
def test_a_run_on_the_page_is_what_the_checker_prints(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = next(found["output"] for found in RUN.finditer(text()) if found["line"] == line)
    output = printed(line, capsys, monkeypatch)
    if REWRITE:
        kind = "mermaid" if MERMAID in line else "text"
        block = f"```sh\nquorate {line}\n```\n\n```{kind}\n{output}```\n"
        page = PAGE.read_text(encoding="utf-8")
        changed = RUN.sub(lambda found: block if found["line"] == line else found[0], page)
        PAGE.write_text(changed, encoding="utf-8")
        return
    assert output == shown, f"{line}: it prints something else; REWRITE_GOLDEN=1 writes it into the page"


def test_every_block_of_commands_is_a_run_that_is_shown() -> None:
    commands = re.findall(r"^```sh\n(.*?)```\n", text(), re.MULTILINE | re.DOTALL)
    assert [each.strip() for each in commands] == [f"quorate {line}" for line in runs()]
    assert len(set(runs())) == len(runs()), "a run is shown once"


def test_no_line_of_a_run_is_too_wide_for_a_page() -> None:
    wide = [
        line
        for found in RUN.finditer(text())
        if MERMAID not in found["line"]
        for line in found["output"].splitlines()
        if len(line) > WIDEST
    ]
    assert wide == []


@pytest.mark.parametrize("place", range(len(QUOTED.findall(text()))))
def test_the_lines_that_the_page_quotes_are_those_of_the_recipes(place: int) -> None:
    quoted = list(QUOTED.finditer(text()))[place]
    source = (ROOT / quoted["file"]).read_text(encoding="utf-8")
    indents = {line[: len(line) - len(line.lstrip())] for line in source.splitlines()}
    candidates = (textwrap.indent(quoted["code"], indent) for indent in indents)
    assert any(f"\n{each}" in source for each in candidates), f"{quoted['file']} has no such lines"


@pytest.mark.parametrize(
    ("heading", "kind"), [("Clients with a recipe", RecipeScenario), ("Clients of a service", ServiceScenario)]
)
def test_the_reference_lists_the_keys_of_scenarios_of_clients(heading: str, kind: type[Common]) -> None:
    page = (ROOT / "docs" / "reference-scenarios.md").read_text(encoding="utf-8")
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0].split("<!-- begin properties")[0]
    keys = set(re.findall(r"^\| `(\w+)` \| [^`]", section, re.MULTILINE))
    assert keys == set(kind.__struct_fields__) - set(Common.__struct_fields__)
