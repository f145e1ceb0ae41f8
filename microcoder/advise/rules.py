"""The rules: causes that make a run fail, then symptoms in its answers, and in its policy and updates.

Causes are settings and data; each has signs of its own:

    too_cold         D is low from the first step on, and most groups share one outcome at middling accuracy
    too_hot          from the first step on many answers are no programs; cooler evaluations do twice as well
    limit_too_short  much is cut off from the first step on, in evaluations under the same limit too; or some was, and
                     responses are shorter now and held-out problems solved less often than before training
    masked_in_mean   a mask spared much of what was cut off, then responses and held-out accuracy fell
    weak_judge       much more is accepted than of held-out problems, by few tests; or than by a second policy
    quoted_tests     accepted programs name the inputs of their tests
    all_easy         nearly everything is accepted from the first steps on, and held-out accuracy stands still
    rate_too_high    it went well; then accuracy fell within a few steps, and held-out accuracy with it

Signs at the first step cannot come from an update: they separate the first causes from the last. Thresholds lie
between runs that were made to fail and healthy ones; docs/howto/advise.md has the values of both. D falls and responses
grow in healthy runs too: neither alone is a fault.
"""

from __future__ import annotations

from statistics import median

from .history import History, accuracy_without_signal, at_temperature, mean, rule, unreadable

STEPS = 5  # steps to average over: a small step has a few dozen groups
NO_SIGNAL = "nearly all groups teach nothing; accuracy is {:.2f}"
EASY = 0.8  # problems with at least this accuracy are easy


@rule(
    "warning",
    reason="the samples of a group are nearly one answer and get the same verdict, so there is little to learn from; D "
    "falls further from there",
    remedy="sample more widely: grpo.temperature={warmer} or more; microcoder calibrate measures what is enough, "
    "grpo.temperature=auto takes it",
    claim=8,
    figure=3,
    explains="one_answer diversity_lost entropy_collapse",
)
def too_cold(history: History) -> str | None:
    begun, now = history.first("diversity", 1), history.last("diversity", STEPS)
    alike, accuracy = history.last("no_signal_share", STEPS), history.last("accuracy", STEPS)
    if not (now and alike and accuracy) or not 0.1 < mean(accuracy) < EASY:  # else the problems are the cause
        return None
    if max(begun[0], mean(now)) > 0.2 or mean(alike) < 0.6:
        return None
    at = at_temperature(history.now("temperature"))
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
    accepted = f"{mean(accuracy):.0%} are accepted{at_temperature(temperature)}"
    tested = f"{held_out:.0%} in evaluations{at_temperature(cooler)}"
    return f"{accepted}, but {tested}; {mean(now):.0%} of the responses are no program"


@rule(
    "error",
    reason="truncated responses earn no reward, so training teaches short responses, and that harm stays when the "
    "limit is raised later",
    remedy="begin again with train.max_response_tokens={longer}",
    claim=19,
    figure=9,
    explains="all_truncated no_code no_reward too_hard length_explosion",
)
def limit_too_short(history: History) -> str | None:
    begun, now = history.first("truncated_share", 1), history.last("truncated_share", STEPS)
    if not now or begun[0] < 0.2 or mean(now) < 0.4:
        return _given_up(history)
    looping = history.last("repeated_share", STEPS)
    if looping and mean(looping) > 0.5 * mean(now):  # repeating responses fill any limit
        return None
    limit, tested = history.now("max_response_tokens"), history.setting("train", "eval_max_response_tokens")
    held_out = history.latest("test_truncated_share")
    if held_out is not None and held_out < 0.5 * mean(now) and (not tested or tested == limit):
        return None  # at a lower temperature responses end within the same limit
    at = f" at {limit:.0f} tokens" if limit else ""
    return f"{mean(now):.0%} of the responses are cut off{at}, {begun[0]:.0%} at the first step already"


def _given_up(history: History) -> str | None:
    cut, looping = history.first("truncated_share", STEPS), history.first("repeated_share", STEPS)
    lengths, fell = history.ends("length_mean"), history.held_out_fell(since=lambda tests: tests[0])
    if not (cut and lengths and fell) or mean(cut) < 0.1 or lengths[1] > 0.75 * lengths[0]:
        return None
    if looping and mean(looping) > 0.5 * mean(cut):
        return None
    shorter = f"responses fell from {lengths[0]:.0f} to {lengths[1]:.0f} tokens"
    return f"{mean(cut):.0%} of the responses were cut off in the first steps; since then {shorter}, and {fell}"


@rule(
    "warning",
    reason="a masked response counts as 0 in the mean of its group, so that guesses beside it look better than they "
    "are, and what the mask gained is lost again",
    remedy="begin again, or from an earlier checkpoint, with grpo.masked_in_group=false, or with "
    "train.max_response_tokens={longer}",
    claim=25,
    figure=2,
    explains="rate_too_high entropy_collapse diversity_lost",
)
def masked_in_mean(history: History) -> str | None:
    most, longest, fell = history.most("masked_share"), history.most("length_mean"), history.held_out_fell()
    masked, lengths = history.last("masked_share", STEPS), history.last("length_mean", STEPS)
    if not (history.setting("grpo", "masked_in_group") and masked and lengths and most and longest and fell):
        return None
    if most < 0.15 or mean(masked) > 0.5 * most or mean(lengths) > 0.8 * longest:
        return None
    shorter = f"responses fell from {longest:.0f} to {mean(lengths):.0f} tokens"
    return f"up to {most:.0%} of the responses were masked; since then {shorter}, and {fell}"


@rule(
    "error",
    reason="wrong programs are accepted in training, so training teaches them",
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
    "error",
    reason="the model answers the examples that it sees, not the problem: such programs are accepted and solve "
    "nothing, and held-out problems with tests of the same kind do not show it",
    remedy="tests that no statement shows: microcoder forge PROBLEMS -o STRONGER; read what passes: microcoder "
    "rollouts RUN --best 5",
    claim=3,
    figure=6,
    explains="all_easy too_easy one_answer diversity_lost entropy_collapse",
)
def quoted_tests(history: History) -> str | None:
    shares = history.last("quoted_share", STEPS)
    if not shares or mean(shares) < 0.1:
        return None
    return f"{mean(shares):.0%} of the accepted programs compare their input with that of a test"


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
    reason="an update was too large: the model lost what it knew, and hardly any reward is left to recover by",
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
    held_out = history.held_out_fell()
    if tests and not held_out:
        return None
    return f"accuracy fell from {best:.2f} to {now:.2f} within a few steps" + (f", {held_out}" if held_out else "")


CAUSES = (too_cold, too_hot, limit_too_short, masked_in_mean, weak_judge, quoted_tests, all_easy, rate_too_high)


@rule(
    "error",
    reason="the problems are too hard for this model, or its answers cannot be read as programs",
    remedy="read some: microcoder rollouts RUN --worst 5; then train a stronger model (model.name=...), or on easier "
    "problems (for starter: data.difficulty=[1,2])",
)
def no_reward(history: History) -> str | None:
    rewards, accuracies = history.last("reward", 5, least=3), history.last("accuracy", 5, least=1)
    none = rewards and max([*rewards, *accuracies]) <= 0  # rewards alone may be negative, if length is punished
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
    most = shares and min(shares) > max(0.5, truncated)  # truncated ones hold none because of the limit
    return f"{shares[-1]:.0%} of the responses hold no program" if most else None


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


@rule(
    "warning",
    reason="the samples of a group have become alike, after which accuracy rises a little and then falls",
    remedy="grpo.temperature={warmer}; or grpo.temperature=auto, which samples at several and chooses one, "
    "once, before training",
    claim=34,
    figure=4,
)
def diversity_lost(history: History) -> str | None:
    ends = history.ends("diversity")
    return f"D fell from {ends[0]:.2f} to {ends[1]:.2f}" if ends and ends[1] < min(0.5 * ends[0], 0.2) else None


@rule(
    "warning",
    reason="the policy has become nearly certain of every token and explores no more",
    remedy="train.lr={slower}; the paper keeps it up by a higher clip and no KL term (grpo.preset=grpo_plus)",
    claim=33,
    figure=4,
)
def entropy_collapse(history: History) -> str | None:
    ends = history.ends("entropy")
    return f"entropy fell from {ends[0]:.3f} to {ends[1]:.3f}" if ends and ends[1] < min(0.25 * ends[0], 0.05) else None


@rule(
    "warning",
    reason="the policy is drifting towards noise: the temperature or the learning rate is too high",
    remedy="begin again, or from an earlier checkpoint, with grpo.temperature={cooler} or train.lr={slower}",
)
def entropy_explosion(history: History) -> str | None:
    ends = history.ends("entropy")
    return f"entropy rose from {ends[0]:.2f} to {ends[1]:.2f}" if ends and ends[1] > max(3 * ends[0], 1.0) else None


@rule(
    "warning",
    reason="length itself is being rewarded, or the answers have begun to repeat themselves",
    remedy="read some: microcoder rollouts RUN --truncated; then train.max_response_tokens={longer}, or "
    "grpo.overlong_buffer=auto, which takes reward from answers that nearly reach the limit",
)
def length_explosion(history: History) -> str | None:
    lengths, shares = history.last("length_mean", 12), history.last("truncated_share", 12)
    if not lengths or not shares or mean(shares[-2:]) < mean(shares[:2]) + 0.05:
        return None
    before, after = mean(lengths[:2]), mean(lengths[-2:])
    grew = f"responses grew from {before:.0f} to {after:.0f} tokens in 10 steps, and more are cut off"
    return grew if after > 1.5 * before else None


@rule(
    "error",
    reason="the update overflowed: the weights may be broken from here on",
    remedy="begin again, or from an earlier checkpoint, with train.lr={slower}",
)
def not_finite(history: History) -> str | None:
    names = [name for name in ("loss", "grad_norm") if history.broken(name)]
    return f"{' and '.join(names)} {'are' if names[1:] else 'is'} not a finite number" if names else None


@rule(
    "warning",
    reason="the gradient of this batch is far larger than before; that is seldom harmful, as gradients are clipped",
    remedy="if it happens often: train.lr={slower}",
)
def gradient_spike(history: History) -> str | None:
    norms = history.last("grad_norm", 11)
    usual = median(norms[:-1]) if norms else 0.0
    return f"the gradient's norm is {norms[-1]:.3g}, usually {usual:.3g}" if usual and norms[-1] > 10 * usual else None


@rule(
    "error",
    reason="the schedule has come to its end, or the rate was never set, so nothing is learnt any more",
    remedy="train.lr=1e-6 with train.schedule=constant",
)
def no_learning_rate(history: History) -> str | None:
    rates = history.last("learning_rate", 3)  # a warm-up begins with one 0, a decay ends with one
    return "the learning rate is 0" if rates and not any(rates) else None


@rule(
    "warning",
    reason="the policy has moved far away from the reference model",
    remedy="train.lr={slower}; or, where that is wanted, no KL term: grpo.kl=0",
)
def kl_explosion(history: History) -> str | None:
    values = history.last("kl", 3)
    return f"the KL divergence is {mean(values):.2f} nats a token" if values and mean(values) > 0.5 else None


@rule(
    "warning",
    reason="what samples and what is trained disagree about the same tokens, so updates are made for another policy "
    "than the one that answered",
    remedy="grpo.importance=token weighs tokens by the difference; another rollout.engine may agree better",
)
def samplers_apart(history: History) -> str | None:
    begun, now = history.first("mismatch_mean", STEPS), history.last("mismatch_mean", STEPS)
    if not now or not (mean(now) > 0.05 or mean(now) > max(0.02, 3 * mean(begun))):
        return None
    share = history.now("mismatch_ess")
    worth = "" if share is None else f"; weighed by it, {share:.0%} of the tokens would count"
    apart = f"{mean(now):.3f} a token, {mean(begun):.3f} at first"
    return f"the log-probabilities of sampler and trainer differ by {apart}{worth}"


RULES = (
    *CAUSES,
    no_reward,
    all_truncated,
    no_code,
    too_easy,
    too_hard,
    one_answer,
    judge_faults,
    judge_failing,
    many_cut,
    diversity_lost,
    entropy_collapse,
    entropy_explosion,
    length_explosion,
    not_finite,
    gradient_spike,
    no_learning_rate,
    kl_explosion,
    samplers_apart,
)
