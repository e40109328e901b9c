"""`python -m checker`: see `checker.cli.main`.

SIGTERM is as Ctrl-C: a CI system, or `timeout`, that ends a command gets the report of what was seen until then.
"""

import signal
import sys

try:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from checker.cli.main import main

    sys.exit(main())
except KeyboardInterrupt:  # while the program was still loading
    sys.exit(20)
