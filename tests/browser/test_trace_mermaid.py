"""Mermaid diagrams of traces, parsed by Mermaid itself: the npm package, in a browser without a network."""

import re

import pytest

from checker.job import DiagramEvent
from checker.traces import Trace, Truth, to_mermaid
from checker.traces.summary import Fate, messages_of
from tests.support.traces import SHIPPED, everything, made, repeating, shipped

READ = """async (text) => {
  const diagram = await mermaid.mermaidAPI.getDiagramFromText(text);
  const db = diagram.db, signals = db.getMessages(), kinds = db.LINETYPE;
  const names = Object.fromEntries([...db.getActors()].map(([id, actor]) => [id, actor.description]));
  const box = document.createElement("div");
  box.innerHTML = (await mermaid.render("drawn", text)).svg;
  document.body.replaceChildren(box);
  return {
    lanes: Object.values(names),
    arrows: signals.filter((s) => [kinds.SOLID, kinds.SOLID_CROSS].includes(s.type))
      .map((s) => [names[s.from], names[s.to], s.message, s.type === kinds.SOLID_CROSS]),
    notes: signals.filter((s) => s.type === kinds.NOTE).length,
    loops: signals.filter((s) => s.type === kinds.LOOP_START).length,
    shown: [...box.querySelectorAll("text")].map((each) => each.textContent),
  };
}"""
HOSTILE = ["a; b", "end", "the end", "a %% b", "#35;", "<b>x</b>", "a: b", "->>", "loop", "$$x$$", "{}", "`x`"]


@pytest.fixture(scope="module")
def mermaid(chromium, mermaid_script):
    """A function that returns Mermaid's parse result and rendering of a diagram."""
    page = chromium.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_content("<!doctype html><body></body>")
    page.add_script_tag(path=str(mermaid_script))
    page.evaluate("mermaid.initialize({ startOnLoad: false })")
    yield lambda text: page.evaluate(READ, text)
    page.close()
    assert not asked


def every() -> list[Trace]:
    return [everything(), repeating(), *(shipped(what) for what in SHIPPED)]


def entities_decoded(text: str) -> str:
    """Decode the character codes that Mermaid keeps between two marks until it draws, such as `#35;`."""
    return re.sub("ﬂ°°(\\d+)¶ß", lambda match: chr(int(match[1])), text)


def test_mermaid_reads_every_lane_arrow_note_and_loop_of_a_trace(mermaid):
    for trace in every():
        read = mermaid(to_mermaid(trace))
        assert [entities_decoded(lane) for lane in read["lanes"]][: len(trace.lanes)] == list(trace.lanes)
        ended = {m.number: m for m in messages_of(trace) if m.fate is not Fate.UNDER_WAY}
        assert len(read["arrows"]) == len(ended)
        for source, target, words, crossed in read["arrows"]:
            number = int(words.split()[0].removeprefix("m"))
            assert (source, target) == (ended[number].sender, ended[number].receiver)
            assert crossed is (ended[number].fate is Fate.LOST)
        assert read["loops"] == (trace.loop is not None and trace.loop < trace.depth)
        assert trace.headline in read["shown"]


def test_mermaid_refuses_a_diagram_that_is_broken(mermaid):
    with pytest.raises(Exception, match="Parse error"):
        mermaid(to_mermaid(everything()).replace("Note over", "Note ovr"))


def test_mermaid_shows_hostile_words_as_they_are(mermaid):
    for words in HOSTILE:
        lanes = {words: {"x": 1}, "other": {"x": 1}}
        drawn = [DiagramEvent("send", words, words, "other", 1), DiagramEvent("deliver", "other", words, words, 1)]
        trace = made([("at first", lanes, []), (words, lanes, drawn)], [{"P": Truth.FAILS}] * 2)
        read = mermaid(to_mermaid(trace))
        assert [entities_decoded(lane) for lane in read["lanes"]] == [words, "other"]
        assert words in read["shown"]
        assert f"m1 {words}" in read["shown"]
