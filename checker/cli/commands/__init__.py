"""The commands of `python -m checker`, one module each, in the order of the help."""

from checker.cli.commands import (
    explore,
    gallery,
    history,
    listing,
    proofs,
    quorums,
    replay,
    rollout,
    run,
    tables,
    validate,
)
from checker.cli.commands.command import Command

COMMANDS: dict[str, Command] = {
    module.COMMAND.name: module.COMMAND
    for module in (run, replay, rollout, explore, validate, history, quorums, proofs, tables, gallery, listing)
}
