"""The paper's insights as claims: each with an experiment, a figure and a verdict.

    measures.py    a run's metrics -> one number: last(test_accuracy), growth(length_mean)
    student.py     Student's t distribution
    effects.py     the numbers of arms, seed by seed -> an effect with its interval
    claims.py      a file of claims: what is expected of which arms, and how much of it counts
    deciding.py    effects -> supported, contradicted, undecided, not run
    curves.py      what a figure shows: means over seeds, evaluations, stages
    panels.py      one metric's panel, or the bars of a step's time
    figures.py     the page of a study
    forest.py      the effects of all claims on one page

There is no command yet that runs a study.
"""
