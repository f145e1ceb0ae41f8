"""Evaluation that people can trust: suites, samples, scores, comparisons."""
