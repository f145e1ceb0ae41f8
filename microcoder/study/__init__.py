"""Controlled studies: the paper's insights as claims, each with an experiment, a figure and a verdict.

Before the runs:
    plan.py        a study's file: arms and claims at a scale; studies/*.toml, scales.toml
    launch.py      arms with seeds -> runs, each made once, side by side; after a kill the same command goes on
    policies.py    what each judging policy gets wrong on a run's programs

Deciding:
    measures.py    a run's metrics -> one number: last(test_accuracy), growth(length_mean)
    effects.py     the numbers of arms, seed by seed -> an effect with its interval and spread
    decisions.py   effects -> supported, contradicted, undecided, not run
    results.py     a folder of studies -> its finished runs and decided claims

The report:
    phrases.py     numbers as people read them
    figures.py     the arms of a study; the effects of all claims (a forest plot)
    asked.py       three tables that the paper's readers asked for
    page.py        the report as Markdown
    report.py      page, figures and report.json, written
"""
