"""The table of log messages: the page of the manual, and the texts in the classes of released jars.

The expected texts are the constants of the classes that write them. `REWRITE_GOLDEN=1` writes the page; read the diff.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from checker.diagnose.messages import ARGUMENT, MESSAGES, NORMAL, LogKind, LogMessage, read_log
from harness.releases import MAVEN, OLDER, folder_of
from tests.support.programs import available

PAGE = Path(__file__).parents[4] / "docs" / "reference-log-messages.md"
HEADING = "| kind | since | class and method | text |\n| --- | --- | --- | --- |\n"
SAMPLES = {"role": "LOOKING", "release": "3.9.5", "file": "currentEpoch", "host": "zk3.example"}
JOINED = (LogKind.ROLE, LogKind.VERSION)
"""The kinds whose text is put together by the layout or by two classes; the logs of the incidents have both."""
RELEASES = ("3.9.5", *(one for one in (*OLDER, *MAVEN[:-1]) if folder_of(one).is_dir()))
"""The release that the tests need, and all others that the machine has."""


def table() -> str:
    """The part of the page that is written from the table."""
    rows = "".join(
        f"| `{row.kind.name.lower().replace('_', '-')}` | {row.since} | `{row.source}` |"
        f" `{row.text.replace('|', chr(92) + '|')}` |\n"
        for row in MESSAGES
    )
    meanings = "".join(
        f"| `{kind.name.lower().replace('_', '-')}` | {kind.value} | {'yes' if kind in NORMAL else ''} |\n"
        for kind in LogKind
    )
    return f"{HEADING}{rows}\n## Kinds\n\n| kind | meaning | also in health |\n| --- | --- | --- |\n{meanings}"


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    page = text[: text.index(HEADING)] + table()
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert text == page, "REWRITE_GOLDEN=1 writes the page"


def classes(release: str) -> Mapping[str, bytes]:
    """The constants of each class of a release, by the names of the class and of those around it."""
    texts = {}
    for jar in folder_of(release).glob("zookeeper-*.jar"):
        with ZipFile(jar) as archive:
            names = [name for name in archive.namelist() if name.endswith(".class")]
            texts.update({name.rpartition("/")[2].removesuffix(".class"): archive.read(name) for name in names})
    return texts


def version(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


@pytest.mark.parametrize("release", RELEASES)
def test_the_classes_of_a_release_have_the_texts_since_their_release(release: str) -> None:
    assert available(release) is None
    constants = classes(release)
    for row in MESSAGES:
        if row.source.startswith("java") or row.kind in JOINED:
            continue
        name = row.source.partition(".")[0]
        texts = b"\n".join(text for path, text in constants.items() if name in path.split("$"))
        has_text = all(literal.encode() in texts for literal in row.literals)
        assert has_text == (version(release) >= version(row.since)), row


def sample(row: LogMessage) -> str:
    return ARGUMENT.sub(lambda argument: SAMPLES.get(argument[1] or "", "7"), row.text)


@pytest.mark.parametrize("row", MESSAGES, ids=lambda row: row.text)
def test_a_line_with_the_text_gives_the_kind_and_no_other(row: LogMessage, tmp_path: Path) -> None:
    log = tmp_path / "zookeeper.log"
    log.write_text(f"2026-11-29 07:12:55,825 [myid:3] - WARN  [main:o.a.z.Main@1] - {sample(row)}\n", encoding="utf-8")
    ((kind, occurrences),) = read_log(log).kinds.items()
    assert (kind, occurrences.count) == (row.kind, 1)
    assert occurrences.last.values.keys() == set(re.findall(r"\{(\w+)\}", row.text))


def test_every_kind_has_a_row() -> None:
    assert {row.kind for row in MESSAGES} == set(LogKind)
