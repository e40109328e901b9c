"""What all tests have in common."""

from __future__ import annotations

from hypothesis import settings

# An example may take as long as it does: how long is a question of what else the machine has to do. All else is as it
# was; where CI is set, that is Hypothesis's own choice of examples that are the same each time.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")
