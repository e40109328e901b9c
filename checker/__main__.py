"""`python -m checker`: see `checker.cli.main`.

SIGTERM is handled like Ctrl-C: if a CI system or `timeout` ends a command, the command still reports the states seen so
far.
"""

import signal
import sys

try:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from checker.cli.main import main

    sys.exit(main())
except KeyboardInterrupt:  # during the loading of the program
    sys.exit(20)
