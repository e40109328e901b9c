"""The command line: the options, the commands and the printed output. It decides nothing about models or verdicts."""

import checker.source  # noqa: F401 (it looks at the files before the other modules are loaded)
