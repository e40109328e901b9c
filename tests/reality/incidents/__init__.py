"""Incidents provoked on real servers, with known truth, and the judgement of a diagnosis of them."""
