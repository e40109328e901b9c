"""An unexpected exception of a step is an error for the one client whose request caused it, and one line in the log.

Source: `PrepRequestProcessor.pRequestHelper` and `FinalRequestProcessor.processRequest`, which answer MarshallingError.
"""

import sys
from pathlib import Path

from harness.commands import OPEN
from harness.ensemble import Ensemble
from harness.session import Session
from tests.node.patience import LONG_LIMITS

CREATE, GET_DATA = 1, 4
LAUNCHER = Path(__file__).parent / "failing_steps.py"
MARSHALLING_ERROR = -5


def test_a_request_whose_step_fails_is_refused_and_every_server_goes_on(tmp_path: Path) -> None:
    with Ensemble(["node"] * 3, tmp_path, tick_time=250, extra=LONG_LIMITS) as ensemble:
        for sid in ensemble.sids:
            command = ensemble.process(sid).command
            command[:] = [sys.executable, str(LAUNCHER), *command[-1:]]
        ensemble.start_all()
        said = dict.fromkeys(ensemble.sids, 0)
        for sid in ensemble.sids:
            client = Session(10_000)
            client.connect(ensemble.client_port(sid))
            path = f"/FAILS-{sid}"
            assert client.ask(CREATE, path, b"", OPEN, 0).err == MARSHALLING_ERROR
            assert client.ask(CREATE, f"/holds-{sid}", b"", OPEN, 0).err == 0
            assert client.ask(GET_DATA, path, False).err == MARSHALLING_ERROR
            assert client.ask(GET_DATA, f"/holds-{sid}", False).err == 0
            client.drop()
            said[ensemble.leader()] += 1
            said[sid] += 1
        assert ensemble.running == ensemble.sids
        for sid in ensemble.sids:
            lines = [line for line in ensemble.process(sid).log.read_text().splitlines() if "FAILS" in line]
            assert len(lines) == said[sid]
            assert all("failing_steps.py" in line and "the step of /FAILS-" in line for line in lines)
