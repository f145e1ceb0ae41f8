"""Training: engines apply `grpo` to a model; rollouts, judging and advantages are the same for all of them.

launch.py       a run from its opening to its summary (summary.json, the plot): new or resumed, stage after stage
plan.py         batch sizes, stages, memory, what is missing: what a training would do
problems.py     settings -> problems and their prompts
step.py         one step's batch: rewards, mask, advantages, metrics, rollouts; an evaluation's accuracy
trl.py          TRL's GRPOTrainer with our advantages and our loss
verl/           verl's PPOTrainerSync with the same
recorder.py     the end of each step: metrics, rollouts, evaluations, warnings, checkpoints
calibration.py  T(D)
ranks.py        several processes: started, watched, ended
sharding.py     how a model lies on them: replicated, FSDP2, ZeRO
card.py         a trained model for use elsewhere
"""
