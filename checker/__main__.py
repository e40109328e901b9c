"""`python -m checker`: see `checker.cli.main`."""

import sys

try:
    from checker.cli.main import main

    sys.exit(main())
except KeyboardInterrupt:  # while the program was still loading
    sys.exit(20)
