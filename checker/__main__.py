"""`python -m checker`: see `checker.cli.main`."""

import sys

from checker.cli.main import main

sys.exit(main())
