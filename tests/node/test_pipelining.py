"""Requests that are sent without waiting are all answered in order, including a sync between writes."""

from collections.abc import Callable

import pytest

from harness.commands import CREATE2, OPEN
from harness.ensemble import Ensemble
from harness.layouts import write_request
from harness.session import Session

SYNC, GET = 9, 4
ROUNDS = 50


@pytest.fixture(scope="module", params=["real", "node"])
def three(request: pytest.FixtureRequest, launch: Callable[..., Ensemble]) -> Ensemble:
    return launch([request.param] * 3, tick_time=200, extra={"syncLimit": "100", "maxSessionTimeout": "60000"})


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_sync_among_writes_is_answered_in_its_place(three: Ensemble, role: str) -> None:
    sid = next(sid for sid in three.sids if three.role(sid) == role)
    session = Session(60_000)
    session.connect(three.client_port(sid))
    create = (CREATE2, write_request(CREATE2, (f"/{role}-", b"", OPEN, 2)))
    sync = (SYNC, write_request(SYNC, ("/",)))
    get = (GET, write_request(GET, ("/", False)))
    for _ in range(ROUNDS):
        for opcode, body in (create, sync, create, sync, get):
            session.send_raw(opcode, body)
        assert [session.receive_raw()[0] for _ in range(5)] == [0] * 5
    session.close()
