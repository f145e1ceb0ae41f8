"""Controlled studies: the paper's insights as claims, each with an experiment, a figure and a verdict.

Before the runs:
    plan.py        a study's file: arms, claims and gates at a scale; studies/*.toml, scales.toml
    launch.py      runs of arms and seeds: each made once, several at a time; the same command resumes after a kill
    policies.py    mistakes of each judging policy on a run's programs

Deciding:
    measures.py    statistics of a run's metrics: last(test_accuracy), growth(length_mean)
    effects.py     effects: differences between arms, paired by seed, with interval and spread
    decisions.py   effects -> supported, contradicted, undecided, not testable, not run
    results.py     the finished runs and decided claims of a folder of studies

The report:
    phrases.py     numbers and effects in words
    figures.py     the arms of a study; the effects of all claims (a forest plot)
    asked.py       three tables that the paper's readers asked for
    page.py        the report as Markdown
    report.py      writes page, figures and report.json
"""
