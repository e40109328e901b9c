"""`proofs`: lists the z3 proofs for any number of servers and any votes."""

from __future__ import annotations

import argparse

from checker.cli.commands.command import Command
from checker.cli.output import unread_output_discarded
from checker.report.verdict import ExitCode


def _run(_: argparse.Namespace) -> int:
    from checker.symbolic import every_proof, vote_order_lines  # noqa: PLC0415
    from checker.symbolic.proofs import Theorem  # noqa: PLC0415

    proofs = every_proof()
    with unread_output_discarded():
        for proof in proofs:
            print(f"{type(proof).__name__.lower()}: {proof.statement}")
        print("\n".join(line for line in vote_order_lines() if not line.startswith("proved: ")))
    return int(ExitCode.PASSED if all(isinstance(proof, Theorem) for proof in proofs) else ExitCode.SAFETY)


COMMAND = Command("proofs", "Proves with z3 what holds for any number of servers and any votes.", lambda _: None, _run)
