"""ZooKeeper's configuration files, as values: `zoo.cfg`, `myid`, and the dynamic file.

Rules this package keeps:

- Text in, values out: nothing here opens a file. A dynamic file is asked of the caller.
- As lenient and as strict as ZooKeeper. What keeps a server from starting is an error; what it starts with,
  although it can hardly be meant, is a warning in `Config.warnings`.
- All errors of a configuration are reported at once, each with file, line, what is wrong and what would be
  right. No text, however broken, raises anything but `ConfigError`.

    config = parse_zoo_cfg(text, file="zoo.cfg", myid="1\\n", read=texts.get)
    config.view.contains_quorum({1, 2})
"""

from spec.config.ensemble import Ensemble, parse_ensemble, render_ensemble
from spec.config.problems import ConfigError, Problem
from spec.config.server_line import Address, LearnerType, ServerAddress, ServerLine, parse_server, render_server
from spec.config.zoo_cfg import Config, Read, parse_zoo_cfg, version_in_name

__all__ = [
    "Address",
    "Config",
    "ConfigError",
    "Ensemble",
    "LearnerType",
    "Problem",
    "Read",
    "ServerAddress",
    "ServerLine",
    "parse_ensemble",
    "parse_server",
    "parse_zoo_cfg",
    "render_ensemble",
    "render_server",
    "version_in_name",
]
