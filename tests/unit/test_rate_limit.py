"""A logger under a rate limit: the lines that pass, those that are dropped, and the report of them."""

import logging

import pytest

from refimpl.rate_limit import RateLimit


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
