"""Parts of the test-suite of kazoo at our nodes; `python -m harness kazoo` runs the whole, also at real servers."""

import pytest

from harness.__main__ import main


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "selection"),
    [
        (1, "TestSASLDigestAuthentication or TestSSLClient or TestClientTransactions"),
        (3, "TestReconfig or TestReadOnlyMode"),
    ],
)
def test_these_tests_of_kazoo_pass(size: int, selection: str) -> None:
    assert main(["kazoo", "--servers", str(size), "--ours-only", "--select", selection]) == 0
