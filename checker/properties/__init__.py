"""What ensembles are held to, by name."""
