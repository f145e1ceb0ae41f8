"""The parts that verl is given, and the trainer that uses them.

Can be read where verl is not installed:

    settings.py     our settings -> verl's, what verl cannot be asked for, verl's metrics -> ours
    session.py      where a training begins; the files that verl reads; a Ray session for one stage

Loaded by `import verl` in every process:

    plugin.py       all that is registered: agent, reward, loss
    cpu.py, cpu_engine.py   verl on CPUs

Of the trainer:

    worker.py       its training processes
    trainer.py      a run: its stages, resuming; TransferQueue -> our responses
"""
