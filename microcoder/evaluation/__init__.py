"""Evaluation of models on suites of problems: samples, verdicts, scores, comparisons.

suite.py         problems of a suite, samples and their marks
catalog.py       suites by name: LiveCodeBench, HumanEval, MBPP, EvalPlus, starter, any file
local.py         samples of a model on this machine
chat.py          samples of a model behind an OpenAI-compatible address
completions.py   samples from a file, and the program in a completion
folder.py        the folder of an evaluation: conditions, samples, verdicts and scores
harness.py       an evaluation from beginning to end
score.py         marks -> scores; two evaluations compared
tables.py        scores as text, Markdown and LaTeX
temperatures.py  checkpoints over a grid of temperatures
"""
