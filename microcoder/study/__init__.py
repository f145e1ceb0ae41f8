"""The paper's insights as claims: each with an experiment, a figure and a verdict.

What is compared, and what is claimed of it:
    strict.py      TOML that is read strictly
    claims.py      what is expected of which arms, and how much of it counts
    arms.py        an arm at a scale: the settings that make it; scales.toml
    plan.py        a study's file: its arms and its claims; studies/*.toml
    runs.py        arms with seeds -> runs, each made once

Making the runs:
    processes.py   commands side by side
    running.py     the runs of studies, side by side; after a kill the same command goes on
    formats.py     problems whose answers are written in varied formats
    judging.py     what each judging policy gets wrong on a run's programs

Deciding:
    measures.py    a run's metrics -> one number: last(test_accuracy), growth(length_mean)
    student.py     Student's t distribution
    effects.py     the numbers of arms, seed by seed -> an effect with its interval
    spread.py      how far seeds lie apart, by a test's own arms and the study's others
    deciding.py    effects -> supported, contradicted, undecided, not run
    words.py       numbers as people read them

Showing: reporting/
"""
