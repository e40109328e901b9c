"""The limit on open files is raised at the start, and partly reserved for the server."""

import subprocess
import sys

import pytest

from refimpl.process import RESERVE, first_reserved

LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from refimpl.process import raise_limit
print(raise_limit(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("soft", "hard"), [(256, 900), (900, 900)])
def test_the_soft_limit_is_raised_to_the_hard_one(soft: int, hard: int) -> None:
    """A subprocess sets its hard limit, which cannot be raised again."""
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED.format(soft=soft, hard=hard)], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == [str(hard), str(hard)]


@pytest.mark.parametrize(("limit", "first"), [(1 << 20, (1 << 20) - RESERVE), (1024, 512), (256, 128), (1, 1)])
def test_the_reserve_is_fixed_or_half_of_a_small_limit(limit: int, first: int) -> None:
    assert first_reserved(limit) == first
