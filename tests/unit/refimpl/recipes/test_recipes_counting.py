"""A client with continuous numbering: the numbers of its requests are unique across all of its connections."""

from typing import Any

import pytest
from kazoo.client import KazooClient

from refimpl.recipes import keep_counting


def test_the_count_goes_on_where_kazoo_would_begin_anew() -> None:
    connection: Any = keep_counting(KazooClient())._connection
    connection._xid = 0  # as kazoo does for each connection
    connection._xid += 1
    connection._xid += 1
    connection._xid = 0
    connection._xid += 1
    assert connection._xid == 3


def test_a_client_that_is_not_kazoos_is_refused() -> None:
    with pytest.raises(TypeError, match="not kazoo's"):
        keep_counting(object())
