"""Causes: settings and data that make a run fail, each told from the others by what only it leaves behind.

    too_cold         D is low from the first step on, and most groups share one outcome at middling accuracy
    too_hot          from the first step on many answers are no programs; cooler evaluations do twice as well
    limit_too_short  much is cut off from the first step on, in evaluations under the same limit too
    weak_judge       much more is accepted than of held-out problems, by few tests; or than by a second policy
    all_easy         nearly everything is accepted from the first steps on, and held-out accuracy stands still
    rate_too_high    it went well; then accuracy fell within a few steps, and held-out accuracy with it

What the first step shows cannot come from an update: it tells the first five from the last. Thresholds lie between
runs made to fail and healthy ones; docs/advise.md gives the values on either side.
"""

from __future__ import annotations

from .history import History, mean, unreadable
from .rule import rule

STEPS = 5  # to average over: a small step has a few dozen groups
EASY = 0.8  # accuracy from which on problems are easy


@rule(
    "warning",
    reason="the samples of a group are nearly one answer and fare alike, so there is little to learn from; D falls "
    "further from there",
    remedy="sample more widely: grpo.temperature={warmer} or more; microcoder calibrate measures what is enough, "
    "grpo.temperature=auto takes it",
    claim=8,
    figure=3,
    explains="one_answer diversity_lost entropy_collapse",
)
def too_cold(history: History) -> str | None:
    begun, now = history.first("diversity", 1), history.last("diversity", STEPS)
    alike, accuracy = history.last("no_signal_share", STEPS), history.last("accuracy", STEPS)
    if not (now and alike and accuracy) or not 0.1 < mean(accuracy) < EASY:  # else it is the problems' fault
        return None
    if max(begun[0], mean(now)) > 0.2 or mean(alike) < 0.6:
        return None
    at = _at(history.now("temperature"))
    return f"D is {mean(now):.2f}{at}, {begun[0]:.2f} at the first step; {mean(alike):.0%} of the groups teach nothing"


@rule(
    "error",
    reason="so many unlikely tokens are drawn that hardly a program survives them: what is sampled is noise",
    remedy="grpo.temperature={milder}; microcoder calibrate measures which temperatures can learn, "
    "grpo.temperature=auto takes one of them",
    claim=12,
    figure=3,
    explains="no_reward no_code too_hard all_truncated entropy_explosion length_explosion",
)
def too_hot(history: History) -> str | None:
    begun, now = history.first(unreadable, 1), history.last(unreadable, STEPS, least=3)
    accuracy, held_out = history.last("accuracy", STEPS, least=3), history.latest("test_accuracy")
    temperature, cooler = history.now("temperature"), history.setting("train", "eval_temperature")
    if not (begun and now and accuracy and held_out and temperature and cooler) or cooler >= temperature:
        return None
    if min(begun[0], mean(now)) < 0.3 or mean(accuracy) > 0.5 * held_out:
        return None
    return (
        f"{mean(accuracy):.0%} are accepted{_at(temperature)}, but {held_out:.0%} in evaluations{_at(cooler)}; "
        f"{mean(now):.0%} of the responses are no program"
    )


@rule(
    "error",
    reason="what is cut off earns nothing however well it began, so brevity is taught, and that harm stays when the "
    "limit is raised later",
    remedy="begin again with train.max_response_tokens={longer}",
    claim=19,
    figure=9,
    explains="all_truncated no_code no_reward too_hard length_explosion",
)
def limit_too_short(history: History) -> str | None:
    begun, now = history.first("truncated_share", 1), history.last("truncated_share", STEPS)
    if not now or begun[0] < 0.2 or mean(now) < 0.4:
        return None
    looping = history.last("repeated_share", STEPS)
    if looping and mean(looping) > 0.5 * mean(now):  # these would fill any limit
        return None
    limit, tested = history.now("max_response_tokens"), history.setting("train", "eval_max_response_tokens")
    held_out = history.latest("test_truncated_share")
    if held_out is not None and held_out < 0.5 * mean(now) and (not tested or tested == limit):
        return None  # under the same limit cooler answers end
    at = f" at {limit:.0f} tokens" if limit else ""
    return f"{mean(now):.0%} of the responses are cut off{at}, {begun[0]:.0%} at the first step already"


@rule(
    "error",
    reason="wrong programs pass in training, and so they are taught",
    remedy="see what passes: microcoder rollouts RUN --best 5; compare strictly: judge.policy=robust; drop problems "
    "with weak tests: microcoder data run",
    claim=3,
    figure=6,
    explains="all_easy too_easy",
)
def weak_judge(history: History) -> str | None:
    accuracy, also = history.last("accuracy", STEPS), history.last("accuracy_also", STEPS)
    if accuracy and also and mean(accuracy) - mean(also) >= 0.1:
        policy, other = history.setting("judge", "policy") or "in use", history.setting("judge", "also") or "another"
        return f"the policy {policy} accepts {mean(accuracy):.0%}, but {other} {mean(also):.0%} of the same programs"
    tests, held_out = history.last("tests_mean", STEPS), history.latest("test_accuracy")
    if not (accuracy and tests) or held_out is None or mean(tests) > 2:
        return None
    if mean(accuracy) <= max(held_out + 0.15, history.latest("test_accuracy_high") or 0.0):
        return None
    few = f"{mean(tests):.2g} {'test' if mean(tests) == 1 else 'tests'} a problem"
    return f"{mean(accuracy):.0%} are accepted in training, by {few}, but {held_out:.0%} on held-out problems"


@rule(
    "warning",
    reason="the model could solve these problems before, so there is little to learn from them",
    remedy="train on harder problems (for starter: data.difficulty=[4,6]); grpo.dynamic_sampling=3 replaces "
    "groups that teach nothing",
    claim=15,
    figure=5,
    explains="too_easy diversity_lost entropy_collapse",
)
def all_easy(history: History) -> str | None:
    begun, now = history.first("accuracy", STEPS), history.last("accuracy", STEPS)
    alike, tests = history.last("no_signal_share", STEPS), history.all("test_accuracy")
    if not (begun and alike) or min(mean(begun), mean(now)) < EASY:
        return None
    if tests and tests[-1] >= tests[0] + 0.05:  # easy, but it helps
        return None
    held_out = f"; held-out accuracy went from {tests[0]:.2f} to {tests[-1]:.2f}" if tests[1:] else ""
    already = f"{mean(begun):.0%} were accepted in the first steps already"
    return f"{already}, and {mean(alike):.0%} of the groups teach nothing{held_out}"


@rule(
    "error",
    reason="an update went too far: the model forgot what it could, and hardly a reward is left to lead it back",
    remedy="begin again, or from an earlier checkpoint, with train.lr={slower}",
    claim=31,
    figure=8,
    explains="no_reward no_code too_hard one_answer all_truncated diversity_lost entropy_collapse entropy_explosion "
    "length_explosion gradient_spike kl_explosion not_finite",
)
def rate_too_high(history: History) -> str | None:
    values, tests = history.all("accuracy"), history.all("test_accuracy")
    if len(values) < 4:
        return None
    means = [mean(values[max(0, n - 3) : n]) for n in range(1, len(values) + 1)]  # of up to three values each
    best, now = max(means[:-3]), means[-1]
    if best < 0.1 or now > (0.5 if tests else 0.1) * best:
        return None
    steepest = max(means[n] - means[n + 3] for n in range(len(means) - 3))
    if steepest < 0.5 * (best - now):  # a slow decline is the loss of D
        return None
    if tests and (history.latest("test_accuracy_high") or tests[-1]) >= max(tests):
        return None
    held_out = f", held-out accuracy from {max(tests):.2f} to {tests[-1]:.2f}" if tests else ""
    return f"accuracy fell from {best:.2f} to {now:.2f} within a few steps{held_out}"


def _at(temperature: float | None) -> str:
    return f" at temperature {temperature:g}" if temperature else ""


RULES = (too_cold, too_hot, limit_too_short, weak_judge, all_easy, rate_too_high)
