"""Fixtures and helpers that several tests share."""
