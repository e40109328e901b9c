"""The dialect of an older server: scripts in the opcodes that it has, where an older opcode does the same.

Servers before 3.5.0 have no create2, and servers before 3.6.0 no setWatches2. Scripts prepare their znodes by create2,
so without a translation almost every script would end at its first command.

Rules of this module:

- Only the request changes, never its effect: create2 of the four old modes becomes create, and setWatches2 without
  persistent watches becomes setWatches. Both sides run the same translated script.
- A case about such an opcode itself is verbatim, and is not translated.

Source: `ZooDefs.OpCode`; ZOOKEEPER-1297 (create2), ZOOKEEPER-1416 (setWatches2).
"""

from collections.abc import Collection

from msgspec.structs import replace

from harness import commands as c

SET_WATCHES, SET_WATCHES2 = 101, 105


def translated(script: c.Script, missing: Collection[int]) -> c.Script:
    """The script without the opcodes of `missing`, as far as older ones do the same."""
    return tuple(_older(command, missing) for command in script) if missing else script


def _older(command: c.Command, missing: Collection[int]) -> c.Command:
    match command:
        case c.Create(by=c.CREATE2, flags=flags) if c.CREATE2 in missing and flags <= c.EPHEMERAL_SEQUENTIAL:
            return replace(command, by=c.CREATE)
        case c.Multi(parts=parts):
            return replace(command, parts=tuple(_older(part, missing) for part in parts))
        case c.SetWatches(persistent=(), recursive=()) if SET_WATCHES2 in missing:
            return replace(command, by=SET_WATCHES)
        case _:
            return command
