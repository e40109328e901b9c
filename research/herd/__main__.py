"""``python -m research.herd``."""

import sys

from research.herd.command import main

sys.exit(main(sys.argv[1:]))
