"""The lines of a node's log: text of others in them, and a logger under a rate limit."""

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from refimpl.log_lines import LONGEST_LINE, MOST_LINES, RateLimit, log_to

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\n2026-01-01 00:00:00,000 INFO    quorate.node: forged\u202e\u2028\x9b" + "x" * 9999
REFIMPL = Path(__file__).parents[3] / "refimpl"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The stream of the log, set up as the command `python -m refimpl` does."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    log_to(stream, logging.INFO)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("arguments", [("peer: %s", HOSTILE), (HOSTILE.replace("%", "%%"),), ("%r", HOSTILE)])
def test_text_of_others_is_one_bounded_line_without_control_characters(
    arguments: tuple[str, ...], log: io.StringIO
) -> None:
    logging.getLogger("quorate.anything").warning(*arguments)
    (line,) = log.getvalue().splitlines()
    assert line.isprintable()
    assert len(line) < LONGEST_LINE + 100


def test_the_lines_of_an_exception_are_indented_and_bounded(log: io.StringIO) -> None:
    logging.getLogger("quorate.anything").error("a defect", exc_info=ValueError(HOSTILE * 200))
    first, *rest = log.getvalue().splitlines()
    assert first.endswith("a defect")
    assert all(line.startswith("    ") and line.isprintable() for line in rest)
    assert max(map(len, rest)) < LONGEST_LINE + 100
    assert len(rest) <= MOST_LINES


def test_no_other_module_of_the_node_sets_up_a_log() -> None:
    """A second form of a line would be a place where text of others is not cleaned."""
    setup = re.compile(r"basicConfig|Handler\(|Formatter\b|dictConfig|fileConfig|lastResort")
    texts = {path.relative_to(REFIMPL): path.read_text("utf-8") for path in REFIMPL.rglob("*.py")}
    places = {str(path) for path, text in texts.items() if "import logging" in text and setup.search(text)}
    assert places == {"log_lines.py"}


def test_lines_beyond_the_limit_are_counted_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    logger = logging.getLogger("test.rate-limit")
    limit = RateLimit(lines=2, period=10.0, clock=lambda: now[0])
    logger.addFilter(limit)
    try:
        with caplog.at_level(logging.INFO, logger="test.rate-limit"):
            for number in range(5):
                logger.warning("refused %d", number)
            logger.info("never limited")
            now[0] = 10.0
            logger.warning("refused %s", "later")
            now[0] = 20.0
            logger.warning("refused %s", "last")
    finally:
        logger.removeFilter(limit)
    assert caplog.messages == [
        "refused 0",
        "refused 1",
        "never limited",
        "refused later (3 lines before this one exceeded the rate limit)",
        "refused last",
    ]
