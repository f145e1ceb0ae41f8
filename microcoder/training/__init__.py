"""The engines apply `grpo` to a model: rollouts, judging and advantages are the same for all of them.

    problems.py     settings -> problems and their prompts
    batches.py      batch sizes in problems -> the engine's numbers, checked
    collect.py      one step's responses, judged, with rewards, mask and advantages
    measuring.py    its metrics and rollouts
    evaluate.py     accuracy on held-out problems
    loading.py      the model of a run, and its adapter
    on_trl.py       TRL's GRPOTrainer with our advantages and our loss
    on_verl.py      verl's PPOTrainerSync with the same; verl/ holds its parts
    names.py        verl's names -> ours
    saving.py       a checkpoint as a whole or not at all
    recording.py    the end of each step: metrics, rollouts, evaluations, warnings
    training.py     a run: its stages, resuming
    planning.py     what a training would do
    calibrating.py  T(D)
    ranks.py        several devices
    ending.py       what a run leaves: summary.json, the plot
"""
