"""Executes counterexamples of the checker on real servers, step by step beside the model."""
