"""The parts that verl is given; `on_verl.py`, beside this folder, trains with them.

Can be read where verl is not installed:

    settings.py   our settings -> verl's
    refusals.py   what verl cannot be asked for, by name
    files.py      problems -> the files that verl's processes read
    session.py    where a training begins; a Ray session for one stage

Loaded by `import verl` in every process:

    plugin.py     all that is registered
    agent.py      a prompt -> a response, with its own seed
    reward.py     a response -> a verdict, as soon as it is there
    loss.py       the policy loss of `grpo`
    replica.py    generation where vLLM does not run
    cpu.py, cpu_engine.py   verl on CPUs

Of the trainer:

    worker.py     its training processes
    reading.py    TransferQueue -> our responses
    stages.py     a run: its stages, resuming
"""
