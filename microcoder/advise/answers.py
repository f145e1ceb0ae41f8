"""Rules about the answers of the model: whether they can be read, are judged, and tell good from bad."""

from __future__ import annotations

from .history import History, mean
from .rule import rule


@rule(
    "error",
    reason="the problems are too hard for this model, or its answers cannot be read as programs",
    remedy="read some: microcoder rollouts RUN --worst 5; then train a stronger model (model.name=...), or on easier "
    "problems (for starter: data.difficulty=[1,2])",
)
def no_reward(history: History) -> str | None:
    rewards, accuracies = history.last("reward", 5, least=3), history.last("accuracy", 5, least=1)
    none = rewards and max([*rewards, *accuracies]) <= 0  # rewards alone may be negative, where length is punished
    return f"no program earned a reward in {len(rewards)} steps" if none else None


@rule(
    "error",
    reason="the length limit is too small for this model's answers, or they never end",
    remedy="train.max_response_tokens={longer}; if they only repeat themselves, grpo.temperature={warmer}",
    claim=19,
    figure=9,
)
def all_truncated(history: History) -> str | None:
    shares = history.last("truncated_share", 3)
    return f"{shares[-1]:.0%} of the responses are cut off" if shares and min(shares) >= 0.9 else None


@rule(
    "warning",
    reason="the answers end without a Python block: the model may not know the prompt's format",
    remedy="read some: microcoder rollouts RUN --verdict no_code; an instruction-tuned model answers in blocks",
)
def no_code(history: History) -> str | None:
    shares, truncated = history.last("no_code_share", 3), history.now("truncated_share") or 0.0
    most = shares and min(shares) > max(0.5, truncated)  # what is cut off has none either, by the limit's fault
    return f"{shares[-1]:.0%} of the responses hold no program" if most else None


NO_SIGNAL = "nearly all groups teach nothing; accuracy is {:.2f}"


def accuracy_without_signal(history: History) -> float | None:
    """The accuracy of late, if in nearly every group all rewards were the same."""
    shares, accuracies = history.last("no_signal_share", 3), history.last("accuracy", 3)
    return mean(accuracies) if accuracies and shares and min(shares) >= 0.95 else None


@rule(
    "warning",
    reason="nearly every sample is accepted, so no answer is better than the others of its group",
    remedy="train on harder problems (for starter: data.difficulty=[4,6]); grpo.dynamic_sampling=3 replaces "
    "groups that teach nothing",
    claim=15,
    figure=5,
)
def too_easy(history: History) -> str | None:
    accuracy = accuracy_without_signal(history)
    return NO_SIGNAL.format(accuracy) if accuracy is not None and accuracy >= 0.9 else None


@rule(
    "warning",
    reason="hardly any sample is accepted, so no answer is better than the others of its group",
    remedy="train on easier problems (for starter: data.difficulty=[1,2]), or try each more often: grpo.samples=16",
)
def too_hard(history: History) -> str | None:
    accuracy = accuracy_without_signal(history)
    return NO_SIGNAL.format(accuracy) if accuracy is not None and 0 < accuracy <= 0.1 else None  # at 0 it is no_reward


@rule(
    "warning",
    reason="each problem is either always or never solved: the samples of a group are too alike",
    remedy="sample more widely: grpo.temperature={warmer}, or more often: grpo.samples=16",
    claim=8,
    figure=3,
)
def one_answer(history: History) -> str | None:
    accuracy = accuracy_without_signal(history)
    return NO_SIGNAL.format(accuracy) if accuracy is not None and 0.1 < accuracy < 0.9 else None


@rule(
    "warning",
    reason="the judge could not run some programs; they have no reward and leave their groups",
    remedy="see what happened: microcoder rollouts RUN --verdict internal_error",
)
def judge_faults(history: History) -> str | None:
    faults, rows = history.now("judge_faults") or 0.0, history.now("rows") or 0.0
    return f"the judge failed on {faults:.0f} programs" if 0 < faults and faults <= 0.05 * rows else None


@rule(
    "error",
    reason="the judge cannot work on this machine as it is set up; what it cannot run has no reward",
    remedy="run microcoder doctor; where memory is short, judge.workers=1",
)
def judge_failing(history: History) -> str | None:
    faults, rows = history.now("judge_faults") or 0.0, history.now("rows") or 0.0
    return f"the judge failed on {faults:.0f} of {rows:.0f} programs" if faults > 0.05 * rows else None


@rule(
    "warning",
    reason="their programs ran past the end of generation for longer than rollout.straggler_s, so their whole groups "
    "teach nothing",
    remedy="wait longer: rollout.straggler_s={patient}; or, if most of them never end, a smaller limit for each test: "
    "judge.time_limit_s=2",
)
def many_cut(history: History) -> str | None:
    cut, rows = history.last("cut_stragglers", 3), history.last("rows", 3)
    many = cut and rows and all(some > 0.05 * all_ for some, all_ in zip(cut, rows, strict=True))
    return f"{cut[-1]:.0f} of {rows[-1]:.0f} responses were not judged in time" if many else None


RULES = (
    no_reward,
    all_truncated,
    no_code,
    too_easy,
    too_hard,
    one_answer,
    judge_faults,
    judge_failing,
    many_cut,
)
