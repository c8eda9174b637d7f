"""Evaluation: regret, scores, held-out problems and plots."""
