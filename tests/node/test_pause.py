"""A server that is stopped and goes on: its own pause ends no session.

The process is stopped by SIGSTOP for longer than the session timeout. Its timers fire before it reads what clients have
sent meanwhile, so a server that counts the pause as silence closes the session and deletes the ephemeral znode.
"""

import os
import signal
import time
from pathlib import Path

from harness.ensemble import Ensemble
from tests.node.connecting import client_at

TIMEOUT, PAUSE = 2.0, 3.0


def test_a_session_outlives_a_pause_of_its_server(tmp_path: Path) -> None:
    with Ensemble(["node"], tmp_path, standalone=True, tick_time=200) as ensemble:
        ensemble.start_all()
        with client_at(ensemble, 1, timeout=TIMEOUT) as client:
            client.create("/mine", ephemeral=True)
            session, pid = client.client_id[0], ensemble.process(1).pid
            os.kill(pid, signal.SIGSTOP)
            time.sleep(PAUSE)
            os.kill(pid, signal.SIGCONT)

            found = client.retry(client.exists, "/mine")

            assert found is not None
            assert (found.ephemeralOwner, client.client_id[0]) == (session, session)
