"""kazoo's own test-suite, run against our nodes and against real servers, and compared test by test."""
