"""The defects of reconfiguration that real servers show: one run for each, measured as a table of facts."""
