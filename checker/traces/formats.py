"""The formats of a trace, by name: the values of `--format`, and the files that `--traces` writes.

Every format is a view of one `Trace`; it does not explore the model. A new format is a function and a line in
`FORMATS`.

A pytest test of a trace is a file for a project's test suite that detects when a finding is lost. It holds the trace.
Its one test replays it: each step must be possible and give the recorded lanes, and the property must have the same
finding at the end. The file is ruff-clean for any text of a model, except for the length of lines.
"""

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from checker.job import Json
from checker.traces.html import to_html
from checker.traces.itf import to_itf
from checker.traces.markdown import to_markdown
from checker.traces.sequence_diagrams import to_mermaid, to_shiviz
from checker.traces.summary import claim, finding
from checker.traces.svg import to_svg
from checker.traces.text import to_text
from checker.traces.trace import Trace
from spec.text import UNREADABLE

WIDTH = 100
NOT_PLAIN = re.compile(f"(?!\n)(?:[^ -~\u00a1-\u02ff\u0370-\u1fff\u3040-\ud7ff]|{UNREADABLE.pattern})")
"""The characters that are not shown to a reader, and those that ruff finds ambiguous."""

FILE = '''\
"""{summary}

{body}
"""

# ruff: noqa: E501

{imports}from checker.traces import read_itf, replay

TRACE = r"""
{itf}"""


def test_{name}() -> None:
    """Every step happens as it was recorded, and the end is what was found."""
    trace = read_itf(TRACE, "the trace in this file")
    replayed = replay(trace, {job})
    assert replayed.trace.headline == {headline}
    assert replayed.trace.clause == {clause}
    assert replayed.trace{steps} == trace{steps}
'''


def to_pytest(trace: Trace) -> str:
    """The file, with a newline at the end."""
    explanation = (
        "It holds that this run of the model happens step by step as it was recorded, with the same lanes after each "
        "step, and that its end is what was found then. If it fails, the model, the scenario's meaning or the property "
        "has changed; replay tells at which step, what was recorded, and what happens now."
    )
    paragraphs = [finding(trace), f"{trace.job}: {claim(trace)}.", explanation]
    body = "\n\n".join(
        _plain(textwrap.fill(paragraph, WIDTH, break_on_hyphens=False)) for paragraph in paragraphs if paragraph
    )
    model = _model_of(trace.source)
    imports = "" if model is None else "from pathlib import Path\n\n"
    presenter = trace.source.get("presenter")
    named = "" if presenter is None else f", {_literal(str(presenter))}"
    job = "job_of(trace.source)" if model is None else f"job_of(trace.source, Path({_literal(model)}){named})"
    return FILE.format(
        imports=imports + "from checker.cli.sources import job_of\n",
        job=job,
        steps="" if model is None else ".steps",  # the source has a digest of the file
        summary=_plain(textwrap.shorten(trace.headline, WIDTH, placeholder=" ...")) + ".",
        body=body,
        itf=to_itf(trace),
        name=_identifier(trace.headline),
        headline=_literal(trace.headline),
        clause=_literal(trace.clause),
    )


def _model_of(source: Mapping[str, Json]) -> str | None:
    """The name of the model in a Python file that a trace is of, as on a command line; None for other traces."""
    while isinstance(source.get("of"), Mapping):
        source = source["of"]
    return f"{source['file']}:{source['model']}" if source.get("kind") == "model" else None


def _plain(text: str) -> str:
    return _escaped(text.replace("…", "...").replace("\\", "\\\\").replace('"', "'"))


def _literal(text: str) -> str:
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_escaped(inside)}"'


def _escaped(text: str) -> str:
    return NOT_PLAIN.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def _identifier(text: str) -> str:
    """The end of a test's name, made of a headline: `violated_oneleader_at_depth_8`."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:60].strip("_") or "run"


@dataclass(frozen=True)
class Format:
    """A format of traces. `suffix` is that of its files without the first dot; `is_module`: Python imports them."""

    name: str
    suffix: str
    view: Callable[[Trace], str]
    is_module: bool = False

    def file_name(self, stem: str) -> str:
        """The file name of a trace, from the stem that all formats share: `a-b.svg`, and for a test `test_a_b.py`."""
        if self.is_module:
            return f"test_{re.sub(r'[^a-z0-9]+', '_', stem.lower()).strip('_')}.{self.suffix}"
        return f"{stem}.{self.suffix}"


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("text", "txt", to_text),
        Format("markdown", "md", to_markdown),
        Format("mermaid", "mmd", to_mermaid),
        Format("svg", "svg", to_svg),
        Format("html", "html", to_html),
        Format("itf", "itf.json", to_itf),
        Format("shiviz", "shiviz.log", to_shiviz),
        Format("pytest", "py", to_pytest, is_module=True),
    )
}
