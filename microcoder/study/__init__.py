"""The paper's insights as claims: each with an experiment, a figure and a verdict.

    measures.py    a run's metrics -> one number: last(test_accuracy), growth(length_mean)
    student.py     Student's t distribution
    effects.py     the numbers of arms, seed by seed -> an effect with its interval
    claims.py      claims.toml: what is expected of which arms, and how much of it counts
    deciding.py    effects -> supported, contradicted, undecided, not run
"""
