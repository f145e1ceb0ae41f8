"""One step's responses: judged for real, rewarded, masked and weighed. Only the model is scripted."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from faulty_judge import FAULT, Counting
from train_runs import settings

from microcoder.collect import Responding, Response, written
from microcoder.grpo import Stage, group_diversity
from microcoder.judge import Judge
from microcoder.sampling import Completion
from microcoder.schema import Problem, Test, Verdict
from microcoder.training.step import collect, continued, measures, records, spare

RIGHT = "It is one.\n```python\nprint(1)\n```"
AGAIN = "Let me think: one.\n```python\nprint(1)\n```"  # another text with the same program
WRONG = "```python\nprint(2)\n```"
CRASH = "```python\nprint(1 / 0)\n```"
LOOP = CRASH + "\n" + "ha" * 8
SILENT = "I do not know."
ENDLESS = "```python\nwhile True: pass\n```"
PROBLEMS = [Problem(f"p{n}", tests=[Test("", "1\n")]) for n in range(6)]
PROMPTS = [[n] * (n + 1) for n in range(6)]
STAGE = Stage(1, 1.0, 64)


@pytest.fixture(scope="module")
def pool():
    with Counting(workers=2) as judge:
        yield judge


@pytest.fixture
def judge(pool):
    pool.asked = []
    return pool


class Model:
    """Answers each problem with its given texts; `cut` ones are stopped at the limit. Notes who asked for what."""

    straggler_s = 0.0

    def __init__(self, judge, answers, cut=()):
        self.judge, self.answers, self.cut = judge, answers, cut
        self.asked = []

    def ask(self, numbers, seed):
        self.asked.append((list(numbers), seed))

        def sample(prompts):
            found = []
            for n, prompt in enumerate(prompts):
                assert prompt == PROMPTS[numbers[n]]
                for sample, text in enumerate(self.answers[numbers[n]]):
                    ids = list(text.encode())
                    found.append(Completion(n, sample, ids, [-1.0] * len(ids), text in self.cut))
            return self.finished(found)

        return Responding(numbers, PROBLEMS, PROMPTS, sample, text_of, self.judge, self.straggler_s)

    def finished(self, found):
        return reversed(found)  # as if the last had finished first

    def step(self, *more, numbers=(0, 1), others=range(6), stage=STAGE, step=1, **options):
        settings_ = settings("grpo.preset=grpo_plus", *more).grpo
        return collect(list(numbers), self.ask, others, settings_, stage, options.pop("seed", 0), step, **options)


def text_of(ids):
    return bytes(ids).decode()


def rows(batch, name):
    return [getattr(row, name) for row in batch.responses]


def test_an_accepted_program_earns_1_and_any_other_0(judge):
    batch = Model(judge, {0: [RIGHT, WRONG, CRASH, SILENT], 1: [RIGHT, AGAIN, WRONG, WRONG]}).step()
    verdicts = [row.verdict.verdict for row in batch.responses]
    assert verdicts[:4] == ["accepted", "wrong_answer", "runtime_error", "no_code"]
    assert rows(batch, "reward") == [1, 0, 0, 0, 1, 1, 0, 0]
    assert rows(batch, "advantage") == pytest.approx([1.5, -0.5, -0.5, -0.5, 0.866, 0.866, -0.866, -0.866], abs=1e-3)


def test_responses_stand_in_the_order_of_problems_and_samples_whoever_finished_first(judge):
    answers = {3: [RIGHT, WRONG, CRASH, SILENT], 1: [SILENT, RIGHT, RIGHT, WRONG]}
    batch = Model(judge, answers).step(numbers=[3, 1])
    assert rows(batch, "text") == [*answers[3], *answers[1]]
    assert rows(batch, "sample") == [0, 1, 2, 3] * 2
    assert rows(batch, "problem") == [PROBLEMS[3]] * 4 + [PROBLEMS[1]] * 4
    assert rows(batch, "prompt") == [PROMPTS[3]] * 4 + [PROMPTS[1]] * 4


def test_the_same_program_for_the_same_problem_is_judged_once(judge):
    batch = Model(judge, {0: [RIGHT, AGAIN, RIGHT, WRONG], 1: [RIGHT, SILENT, "No.", WRONG]}).step()
    assert Counter(problem for problem, _ in judge.asked) == {"p0": 2, "p1": 3}
    assert rows(batch, "reward") == [1, 1, 1, 0, 1, 0, 0, 0]


def test_a_fault_of_the_judge_is_no_reward_and_leaves_the_group(judge):
    batch = Model(judge, {0: [RIGHT, FAULT, WRONG, WRONG], 1: [FAULT, FAULT, FAULT, RIGHT]}).step()
    assert rows(batch, "reward") == [1, None, 0, 0, None, None, None, 1]
    found = rows(batch, "advantage")
    assert found[:4] == pytest.approx([1.1547, 0, -0.5774, -0.5774], abs=1e-3)  # the mean of three is 1/3
    assert found[4:] == [0, 0, 0, 0]  # one reward alone says nothing
    line = measures(batch, 4)
    assert (line["judge_faults"], line["reward"], line["accuracy"]) == (4, 0.5, 0.5)
    assert line["no_signal_share"] == 0.5


def test_metrics_follow_from_the_responses(judge):
    model = Model(judge, {0: [RIGHT, WRONG, CRASH, SILENT], 1: [WRONG, WRONG, WRONG, WRONG]}, cut=[SILENT, CRASH])
    batch = model.step("grpo.mask=all")
    line = measures(batch, 4)
    lengths = [len(row.ids) for row in batch.responses]
    finished = [len(row.ids) for row in batch.responses if row.text not in (SILENT, CRASH)]
    assert (line["reward"], line["accuracy"], line["no_signal_share"]) == (1 / 8, 1 / 8, 1 / 2)
    assert (line["length_mean"], line["length_max"], line["tokens"]) == (sum(lengths) / 8, max(lengths), sum(lengths))
    assert line["length_finished"] == sum(finished) / 6
    assert (line["truncated_share"], line["masked_share"], line["no_code_share"]) == (1 / 4, 1 / 4, 1 / 8)
    assert line["diversity"] == group_diversity([row.ids for row in batch.responses[:4]]) / 2  # of the other group: 0
    assert line["verdicts"] == {"accepted": 1, "wrong_answer": 5, "runtime_error": 1, "no_code": 1}


def test_only_what_is_masked_in_a_group_with_signal_had_an_advantage(judge):
    model = Model(judge, {0: [RIGHT, WRONG, CRASH, SILENT], 1: [WRONG, WRONG, WRONG, WRONG]}, cut=[WRONG, SILENT])
    line = measures(model.step("grpo.mask=all"), 4)
    assert (line["masked_share"], line["masked_signal_share"]) == (6 / 8, 2 / 8)


def test_what_training_would_have_cut_is_looked_up_where_it_went_on(judge):
    def response(length, verdict, period=1000):
        ids = [n % period for n in range(length)]
        return Response(PROBLEMS[0], [], 0, ids, [], False, "", Verdict(verdict))

    responses = [
        response(64, "accepted"),
        response(65, "accepted"),
        response(80, "accepted"),
        response(90, "wrong_answer"),
        response(128, "wrong_answer", period=4),  # a loop
        response(9, "wrong_answer"),
        response(70, "internal_error"),  # a fault of the judge: neither right nor wrong
    ]
    grpo = settings().grpo
    assert continued(responses, STAGE, grpo, 128) == {
        "test_accuracy_cut": 1 / 6,
        "test_cut_share": 4 / 6,
        "test_continued_share": 2 / 3,
    }
    assert continued(responses, STAGE, grpo, 64) == continued(responses, STAGE, grpo, 0) == {}


# ---- the mask

MIXED = {0: [RIGHT, WRONG, LOOP, SILENT], 1: [RIGHT, AGAIN, WRONG, LOOP]}


@pytest.mark.parametrize(
    ("choice", "masked"),
    [
        (["grpo.mask=none"], set()),
        (["grpo.mask=all"], {RIGHT, WRONG, LOOP}),
        (["grpo.mask=conditional", "grpo.rho=1.0"], {WRONG}),  # RIGHT is correct, LOOP ends in repetition
        (["grpo.mask=conditional", "grpo.rho=1.0", "grpo.mask_outcome=correct"], {RIGHT}),
        (["grpo.mask=conditional", "grpo.rho=0.0"], set()),
    ],
)
def test_the_mask_zeroes_the_advantage_and_nothing_else(judge, choice, masked):
    cut = [RIGHT, WRONG, LOOP]
    plain = Model(judge, MIXED, cut).step("grpo.mask=none")
    batch = Model(judge, MIXED, cut).step(*choice)
    assert {row.text for row in batch.responses if row.masked} == masked
    assert {row.text for row in batch.responses if row.repeated} == {LOOP}
    for before, after in zip(plain.responses, batch.responses, strict=True):
        assert before.advantage != 0
        assert after.reward == before.reward
        assert after.advantage == (0 if after.text in masked else before.advantage)


def test_masked_responses_can_leave_their_group(judge):
    answers, cut = {0: [RIGHT, AGAIN, WRONG, CRASH], 1: [RIGHT, AGAIN, WRONG, WRONG]}, [WRONG]

    def step(*more):
        return Model(judge, answers, cut).step("grpo.mask=all", *more)

    stay, leave = step(), step("grpo.masked_in_group=false")
    assert rows(stay, "masked") == rows(leave, "masked") == [0, 0, 1, 0, 0, 0, 1, 1]
    assert rows(stay, "reward") == rows(leave, "reward") == [1, 1, 0, 0, 1, 1, 0, 0]
    assert rows(stay, "advantage") == pytest.approx([0.866, 0.866, 0, -0.866, 0.866, 0.866, 0, 0], abs=1e-3)
    # Of three, two are right; where all that are left are right, nothing is to be learnt.
    assert rows(leave, "advantage") == pytest.approx([0.577, 0.577, 0, -1.155, 0, 0, 0, 0], abs=1e-3)


def test_who_is_masked_depends_on_seed_step_and_row_alone(judge):
    def masked(**options):
        model = Model(judge, {n: [WRONG] * 4 for n in range(6)}, cut=[WRONG])
        return rows(model.step("grpo.mask=conditional", "grpo.rho=0.5", numbers=range(6), **options), "masked")

    assert masked() == masked()
    assert len({tuple(masked(**one)) for one in ({}, {"step": 2}, {"seed": 1}, {"first_row": 24})}) == 4


def test_overlong_shaping_takes_up_to_1_from_the_last_fifth(judge):
    model = Model(judge, {0: [RIGHT, RIGHT, WRONG, WRONG]})
    length = len(RIGHT.encode())
    stage = Stage(1, 1.0, length)  # RIGHT has the whole limit, WRONG none of its last 5th
    assert len(WRONG.encode()) < length - length // 5
    batch = model.step("grpo.overlong_buffer=auto", numbers=[0], stage=stage)
    assert rows(batch, "reward") == [0, 0, 0, 0]  # 1 - 1 for the right ones
    assert measures(batch, 4)["accuracy"] == 0.5


# ---- dynamic sampling

LIVELY, DEAD = [RIGHT, WRONG, WRONG, WRONG], [WRONG] * 4


def test_groups_without_signal_are_replaced_and_the_replaced_are_kept(judge):
    model = Model(judge, {0: DEAD, 1: LIVELY, 2: LIVELY, 3: LIVELY, 4: LIVELY, 5: LIVELY})
    batch = model.step("grpo.dynamic_sampling=3")
    assert batch.responses[0].problem.id not in ("p0", "p1")
    assert batch.responses[4].problem.id == "p1"
    assert rows(batch, "reward") == [1, 0, 0, 0] * 2
    assert [row.problem.id for row in batch.discarded] == ["p0"] * 4
    assert batch.resampled == 1
    assert len(model.asked) == 2  # all groups have signal after one round
    line = measures(batch, 4)
    assert line["accuracy"] == 2 / 12  # the discarded count
    assert (line["reward"], line["no_signal_share"], line["rows"]) == (0.25, 0, 12)
    kept = records(batch, 1.0)
    assert [row["discarded"] for row in kept] == [False] * 8 + [True] * 4
    assert [row["row"] for row in kept] == list(range(12))
    assert {row["reward"] for row in kept[8:]} == {None}


def test_dynamic_sampling_gives_up_after_its_rounds_and_never_asks_for_a_problem_twice(judge):
    model = Model(judge, dict.fromkeys(range(6), DEAD))
    batch = model.step("grpo.dynamic_sampling=2")
    assert [len(numbers) for numbers, _ in model.asked] == [2, 2, 2]
    assert sorted(n for numbers, _ in model.asked for n in numbers) == list(range(6))
    assert [row.problem.id for row in batch.responses] == ["p0"] * 4 + ["p1"] * 4
    assert rows(batch, "advantage") == [0] * 8
    assert (len(batch.discarded), batch.resampled) == (16, 0)


def test_no_device_draws_a_problem_of_the_step_or_one_that_another_may_draw():
    drawn = [spare(9, busy={0, 4, 7}, device=device, devices=2) for device in range(2)]
    assert drawn == [[1, 3, 6], [2, 5, 8]]
    assert spare(4, busy={1, 2}, device=0, devices=1) == [0, 3]


def test_dynamic_sampling_ends_when_no_other_problem_is_left(judge):
    model = Model(judge, {0: DEAD, 1: LIVELY, 2: DEAD})
    batch = model.step("grpo.dynamic_sampling=5", others=range(3))
    assert [numbers for numbers, _ in model.asked] == [[0, 1], [2]]
    assert len(batch.discarded) == 4


# ---- the wait for the last verdicts


@pytest.fixture(scope="module")
def patient():
    with Judge(workers=1, time_limit_s=30) as judge:
        yield judge


class Straggling(Model):
    """Endless programs come last, when all others have been judged. The judge has one worker, which takes its turns."""

    straggler_s = 0.1

    def finished(self, found):
        endless = [one for one in found if ENDLESS in text_of(one.ids)]
        yield from (one for one in found if one not in endless)
        self.judge.check(PROBLEMS[0], SILENT)
        yield from endless


def test_what_is_not_judged_in_time_is_cut_and_its_whole_group_teaches_nothing(patient):
    batch = Straggling(patient, {0: [RIGHT, ENDLESS, WRONG, "Or:\n" + ENDLESS], 1: LIVELY}).step()
    assert rows(batch, "cut") == [False, True, False, True] + [False] * 4  # the two programs are one
    assert rows(batch, "reward") == [1, None, 0, None, 1, 0, 0, 0]
    assert rows(batch, "advantage") == pytest.approx([0, 0, 0, 0, 1.5, -0.5, -0.5, -0.5], abs=1e-3)
    assert batch.responses[1].verdict.message.startswith("not judged: cut 0.1 s after the end of generation")
    assert batch.seconds["judging_floor_s"] == batch.seconds["judging_s"] > 0.05
    line = measures(batch, 4)
    assert (line["cut_stragglers"], line["judge_faults"], line["no_signal_share"]) == (2, 0, 0.5)
    assert (line["reward"], line["accuracy"]) == (1 / 3, 1 / 3)
    assert [row["cut"] for row in records(batch, 1.0)] == rows(batch, "cut")
    assert patient.check(PROBLEMS[0], RIGHT).accepted  # the only worker is not kept busy for its 30 s


def test_a_group_with_a_cut_response_is_replaced_by_dynamic_sampling_and_what_was_cut_is_counted(patient):
    answers = {0: [RIGHT, WRONG, WRONG, ENDLESS], 1: LIVELY, 2: LIVELY, 3: [RIGHT, WRONG, ENDLESS, WRONG]}
    batch = Straggling(patient, answers).step("grpo.dynamic_sampling=2", numbers=[0, 1], others=[2])
    assert [row.problem.id for row in batch.responses] == ["p2"] * 4 + ["p1"] * 4
    assert measures(batch, 4)["cut_stragglers"] == 1
    batch = Straggling(patient, answers).step("grpo.dynamic_sampling=2", numbers=[0, 1], others=[3])
    assert [row.problem.id for row in batch.responses] == ["p0"] * 4 + ["p1"] * 4  # p3 is no better
    assert measures(batch, 4)["cut_stragglers"] == 2


def test_of_the_wait_for_an_endless_program_its_time_limit_is_the_floor():
    with Judge(workers=1, time_limit_s=1) as judge:
        model = Straggling(judge, {0: [RIGHT, ENDLESS, WRONG, WRONG]})
        model.straggler_s = 0.0  # all are waited for
        batch = model.step(numbers=[0])
    assert batch.responses[1].verdict.verdict == "time_limit"
    assert not any(rows(batch, "cut"))
    assert 0.5 < batch.seconds["judging_floor_s"] <= batch.seconds["judging_s"]


def test_without_slow_programs_the_floor_is_next_to_nothing_in_every_round(judge):
    batch = Model(judge, dict.fromkeys(range(6), LIVELY) | {0: DEAD}).step("grpo.dynamic_sampling=2")
    used = [row.verdict.cpu_s for row in [*batch.responses, *batch.discarded]]
    assert batch.seconds.keys() == {"generation_s", "judging_s", "judging_floor_s"}
    assert 0 <= batch.seconds["judging_floor_s"] <= min(batch.seconds["judging_s"], 2 * max(used))


# ---- chance


def test_shuffled_rewards_are_the_same_rewards_dealt_out_anew(judge):
    answers = {n: [RIGHT, WRONG, FAULT if n == 2 else AGAIN, CRASH] for n in range(6)}
    real = Model(judge, answers).step(numbers=range(6))
    control = Model(judge, answers).step("grpo.control=shuffled_rewards", numbers=range(6))
    again = Model(judge, answers).step("grpo.control=shuffled_rewards", numbers=range(6))
    other = Model(judge, answers).step("grpo.control=shuffled_rewards", numbers=range(6), step=2)
    assert Counter(rows(control, "reward")) == Counter(rows(real, "reward")) == {1: 11, 0: 12, None: 1}
    assert control.responses[10].reward is None  # the fault stays where it was
    assert rows(control, "reward") == rows(again, "reward")
    assert rows(real, "reward") != rows(control, "reward") != rows(other, "reward")
    assert measures(control, 4)["accuracy"] == measures(real, 4)["accuracy"]


def test_the_seeds_of_a_step_are_its_own_and_the_same_when_it_is_made_again(judge):
    def asked(**options):
        model = Model(judge, dict.fromkeys(range(6), DEAD))
        model.step("grpo.dynamic_sampling=1", **options)
        return model.asked

    assert asked() == asked()
    ways = [asked(), asked(step=2), asked(seed=1), asked(first_row=8)]
    seeds = [seed for way in ways for _, seed in way]
    assert len(set(seeds)) == len(seeds) == 8


@pytest.mark.long
def test_a_step_that_flows_gives_each_group_as_soon_as_it_is_judged(judge):
    answers = {0: [RIGHT, WRONG, CRASH, ENDLESS], 1: LIVELY, 2: [RIGHT, RIGHT, WRONG, WRONG]}
    whole = Model(judge, answers).step(numbers=[0, 1, 2])
    batch = Model(judge, answers).step(numbers=[0, 1, 2], flows=True)
    assert batch.responses[3].pending  # an endless program is not waited for
    while not {1, 2} <= batch.tail.done(wait=True):
        pass
    assert batch.tail.done() == {1, 2}
    assert rows(batch, "advantage")[4:] == rows(whole, "advantage")[4:]
    assert rows(batch, "advantage")[:4] == [0.0] * 4
    before = batch.tail.seconds["judging_s"]
    while 0 not in batch.tail.done(wait=True):
        pass
    assert batch.tail.seconds["judging_s"] > before + 0.5
    for name in ("reward", "advantage", "masked", "cut"):
        assert rows(batch, name) == rows(whole, name)


def test_a_step_that_flows_is_given_to_other_processes_without_its_tail(judge):
    batch = Model(judge, {0: LIVELY, 1: LIVELY}).step(flows=True)
    while batch.tail.done(wait=True) != {0, 1}:
        pass
    given = pickle.loads(pickle.dumps(batch))
    assert batch.tail is not None and given.tail is None
    assert rows(given, "reward") == rows(batch, "reward")


@pytest.mark.parametrize("setting", ["grpo.dynamic_sampling=2", "grpo.control=shuffled_rewards"])
def test_a_step_that_needs_all_rewards_at_once_does_not_flow(judge, setting):
    batch = Model(judge, {0: LIVELY, 1: LIVELY}).step(setting, flows=True)
    assert batch.tail is None and None not in rows(batch, "reward")


def test_what_is_cut_is_cut_while_the_step_flows_too(patient):
    batch = Straggling(patient, {0: [RIGHT, ENDLESS, WRONG, WRONG], 1: LIVELY}).step(flows=True)
    while batch.tail.done(wait=True) != {0, 1}:
        pass
    assert rows(batch, "cut") == [False, True, False, False] + [False] * 4
    assert rows(batch, "advantage") == pytest.approx([0, 0, 0, 0, 1.5, -0.5, -0.5, -0.5], abs=1e-3)
    assert patient.check(PROBLEMS[0], RIGHT).accepted


def test_a_thought_that_the_prompt_opened_is_opened_in_the_text_and_its_drafts_are_no_answers(judge):
    tokens = {0: "Solve.", 1: "<think>", 2: "\n", 3: RIGHT, 4: "</think>"}

    def decode(ids):
        return "".join(tokens[n] for n in ids)

    def sample(_):
        for n, ids in enumerate(([3], [3, 4, 3], [3, 4])):
            yield Completion(0, n, ids, [0.0] * len(ids), truncated=n == 0)

    def verdicts(prompt):
        responses, _ = Responding([0], PROBLEMS, [prompt], sample, decode, judge).all()
        return [(row.verdict.verdict, row.truncated) for row in responses]

    assert verdicts([0, 1, 2]) == [("no_code", True), ("accepted", False), ("no_code", False)]
    assert verdicts([0, 2]) == [("accepted", True), ("accepted", False), ("no_code", False)]
    assert written(decode, [0, 1, 2], [3]) == f"<think>{RIGHT}"
