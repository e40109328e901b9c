"""Deterministic simulation of ensembles."""
