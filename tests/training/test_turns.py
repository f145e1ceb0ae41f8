"""Repair turns: a failed try is told the verdict and followed by another; the reward is that of the last."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from faulty_judge import FAULT, Counting
from rollout_fixture import (
    END,
    LIMIT,
    NANO,
    PROBLEMS,
    SAMPLES,
    TEMPERATURE,
    direct_advantages,
    distance,
    fixture,
    objective,
    plain_model,
)
from train_runs import resumed, same, settings, timeless, trained, weights
from transformers import PrinterCallback, TrainerCallback

from microcoder.collect import Repair, Responding, Try
from microcoder.config import load
from microcoder.config.layers import find
from microcoder.grpo import Stage, group_diversity, policy_loss, token_logprobs
from microcoder.judge import Judge
from microcoder.models.weights import load_tokenizer, quiet
from microcoder.prompts import feedback
from microcoder.runs import read_rollouts
from microcoder.sampling import Completion, encode_next
from microcoder.schema import Problem, Test, Verdict
from microcoder.training.dry_run import describe
from microcoder.training.memory import GIB, TOLD, Device, MemoryPlan
from microcoder.training.model_shape import ModelShape
from microcoder.training.plan import PlanError, batches
from microcoder.training.step import collect, measures, records
from microcoder.training.trl import TrlStageTrainer

quiet()

RIGHT = "```python\nprint(1)\n```"
WRONG = "```python\nprint(2)\n```"
CRASH = "```python\nprint(1 / 0)\n```"
ENDLESS = "```python\nwhile True: pass\n```"
SILENT = "I do not know."
ONE = Problem("p0", tests=[Test("", "1\n")])
PROMPT = [7, 7, 7]
STAGE = Stage(1, 1.0, 64)


@pytest.fixture(scope="module")
def pool():
    with Counting(workers=2, time_limit_s=1) as judge:
        yield judge


@pytest.fixture
def judge(pool):
    pool.asked = []
    return pool


class Model:
    """A scripted model: each sample has a list of tries. Notes the texts that it was asked to go on with."""

    def __init__(self, judge, *samples, cut=(), turns=2, show="verdict", trained=True, straggler_s=0.0):
        self.judge, self.samples, self.cut, self.straggler_s = judge, samples, cut, straggler_s
        self.asked: list[list[list[int]]] = []
        self.repair = Repair(turns, partial(feedback, show=show), self.encode, self.again, trained)

    def encode(self, ids, message):
        return list(f"<{message}>".encode())

    def completion(self, prompt, sample, text, value):
        ids = list(text.encode())
        return Completion(prompt, sample, ids, [value] * len(ids), text in self.cut)

    def first(self, prompts):
        return reversed([self.completion(0, n, tries[0], -1.0) for n, tries in enumerate(self.samples)])

    def again(self, prompts, turn):
        self.asked.append(prompts)
        open_ = [tries for tries in self.samples if len(tries) >= turn]
        assert len(open_) == len(prompts)
        return reversed([self.completion(n, 0, tries[turn - 1], -2.0) for n, tries in enumerate(open_)])

    def ask(self, numbers, seed):
        return Responding(
            numbers,
            [ONE],
            [PROMPT],
            self.first,
            lambda ids: bytes(ids).decode(),
            self.judge,
            self.straggler_s,
            self.repair,
        )

    def step(self, *more, **options):
        grpo = settings("grpo.preset=grpo_plus", f"grpo.samples={len(self.samples)}", *more).grpo
        return collect([0], self.ask, [0], grpo, STAGE, 0, 1, **options)


def told(verdict, show="verdict", message=""):
    return feedback(ONE, Verdict(verdict, message=message), show)


# ---- who is asked again, and what a response is


def test_a_group_worked_by_hand(judge):
    """Four samples: right at once; repaired; wrong twice; without code, then right."""
    model = Model(judge, [RIGHT], [WRONG, RIGHT], [CRASH, WRONG], [SILENT, RIGHT])
    rows = model.step().responses
    assert [row.reward for row in rows] == [1, 1, 0, 1]  # of the last try
    assert [row.advantage for row in rows] == pytest.approx([0.5, 0.5, -1.5, 0.5], abs=1e-5)
    assert [[one.verdict.verdict for one in row.tries] for row in rows] == [
        ["accepted"],
        ["wrong_answer", "accepted"],
        ["runtime_error", "wrong_answer"],
        ["no_code", "accepted"],
    ]
    message = list(f"<{told('wrong_answer')}>".encode())
    before, after = list(WRONG.encode()), list(RIGHT.encode())
    assert rows[1].prompt == PROMPT  # shared by the whole group
    assert rows[1].tokens == [*before, *message, *after]
    assert rows[1].trained == [True] * len(before) + [False] * len(message) + [True] * len(after)
    assert rows[1].sampled == [-1.0] * len(before) + [0.0] * len(message) + [-2.0] * len(after)
    assert model.asked == [[[*PROMPT, *before, *message]] + [[*PROMPT, *_begun(row)] for row in rows[2:]]]
    assert rows[0].tokens is rows[0].ids and all(rows[0].trained)


def _begun(row):
    return row.tokens[: len(row.tokens) - len(row.ids)]


def test_only_the_last_try_may_be_trained_on(judge):
    row = Model(judge, [RIGHT], [WRONG, RIGHT], trained=False).step().responses[1]
    assert row.trained == [False] * len(_begun(row)) + [True] * len(row.ids)


def test_a_program_that_was_judged_in_an_earlier_turn_is_not_judged_again(judge):
    rows = Model(judge, [WRONG, WRONG], [WRONG, RIGHT], [RIGHT]).step().responses
    assert sorted(text for _, text in judge.asked) == sorted([WRONG, RIGHT])
    assert [row.reward for row in rows] == [0, 1, 1]


def test_there_may_be_more_than_two_turns(judge):
    model = Model(judge, [WRONG, CRASH, RIGHT], [WRONG, RIGHT], [SILENT, SILENT, SILENT], turns=3)
    rows = model.step().responses
    assert [len(row.tries) for row in rows] == [3, 2, 3]
    assert [row.reward for row in rows] == [1, 1, 0]
    assert [len(prompts) for prompts in model.asked] == [3, 2]
    assert model.asked[1][0] == [*PROMPT, *_begun(rows[0])]


def test_a_fault_of_the_judge_ends_a_response_in_any_turn(judge):
    rows = Model(judge, [FAULT], [WRONG, FAULT], [WRONG, RIGHT], [RIGHT]).step().responses
    assert [row.reward for row in rows] == [None, None, 1, 1]
    assert [row.advantage for row in rows] == [0, 0, 0, 0]


class Straggling(Model):
    """The endless program comes last, when the others have been judged. The judge has one worker."""

    def first(self, prompts):
        found = list(super().first(prompts))
        yield from (one for one in found if bytes(one.ids) != ENDLESS.encode())
        self.judge.check(ONE, SILENT)
        yield from (one for one in found if bytes(one.ids) == ENDLESS.encode())


def test_a_verdict_that_comes_too_late_ends_a_response_and_silences_its_group():
    with Judge(workers=1, time_limit_s=30) as judge:
        batch = Straggling(judge, [RIGHT], [ENDLESS], [WRONG, RIGHT], straggler_s=0.1).step()
    assert [row.cut for row in batch.responses] == [False, True, False]
    assert [row.reward for row in batch.responses] == [1, None, 1]
    assert [row.advantage for row in batch.responses] == [0, 0, 0]
    assert batch.seconds["judging_s"] > 0.05  # of the first turn, to which the second adds


def test_where_nobody_failed_the_sampler_is_still_called(judge):
    """Devices that share weights gather them for each call, so all have to make as many."""
    model = Model(judge, [RIGHT], [RIGHT])
    assert not any(row.earlier for row in model.step().responses)
    assert model.asked == [[]]


@pytest.mark.parametrize("show", ["nothing", "verdict", "error", "difference"])
def test_the_model_is_told_what_the_setting_allows(judge, show):
    row = Model(judge, [WRONG, RIGHT], [RIGHT], show=show).step().responses[0]
    assert row.earlier[0].message == told("wrong_answer", show, row.earlier[0].verdict.message)
    assert ("expected" in row.earlier[0].message) == (show == "difference")


def test_a_step_may_flow_while_the_last_tries_are_judged(judge):
    tries = [RIGHT], [WRONG, RIGHT], [WRONG, ENDLESS], [CRASH, WRONG]
    whole = Model(judge, *tries).step()
    batch = Model(judge, *tries).step(flows=True)
    assert batch.responses[2].pending and batch.responses[2].earlier
    while not batch.tail.done(wait=True):
        pass
    assert [row.advantage for row in batch.responses] == [row.advantage for row in whole.responses]


# ---- mask, metrics, records


def test_mask_repetition_and_overlong_shaping_look_at_the_last_try(judge):
    loop = "ha" * 16
    model = Model(judge, [RIGHT], [SILENT, WRONG], [loop, RIGHT], [WRONG, loop], cut=[SILENT, loop])
    rows = model.step("grpo.mask=all").responses
    assert [row.truncated for row in rows] == [False, False, False, True]
    assert [row.masked for row in rows] == [False, False, False, True]
    assert [row.repeated for row in rows] == [False, False, False, True]
    assert rows[3].advantage == 0 and rows[1].advantage < 0 < rows[2].advantage


def test_metrics_tell_first_tries_from_last_ones(judge):
    batch = Model(judge, [RIGHT], [WRONG, RIGHT], [CRASH, WRONG], [SILENT, RIGHT]).step()
    line = measures(batch, 4, turns=2)
    assert (line["accuracy_first"], line["accuracy"], line["reward"]) == (1 / 4, 3 / 4, 3 / 4)
    assert line["repaired_share"] == 2 / 3
    written = [WRONG, CRASH, SILENT, RIGHT, RIGHT, WRONG, RIGHT]
    assert line["tokens"] == sum(map(len, written))
    second = len(RIGHT + WRONG + RIGHT)
    assert line["entropy"] == pytest.approx(1 + second / line["tokens"])  # 1 nat in first tries, 2 in second ones
    assert line["length_mean"] == (3 * len(RIGHT) + len(WRONG)) / 4
    assert line["diversity"] == group_diversity([list(text.encode()) for text in (RIGHT, WRONG, CRASH, SILENT)])
    assert line["verdicts"] == {"accepted": 3, "wrong_answer": 1}
    assert not measures(batch, 4).keys() & {"accuracy_first", "repaired_share"}


def test_a_rollout_keeps_its_earlier_tries(judge):
    batch = Model(judge, [RIGHT], [WRONG, RIGHT]).step()
    first, second = records(batch, 1.0)
    assert "earlier" not in first
    assert (second["completion"], second["verdict"], second["length"]) == (RIGHT, "accepted", len(RIGHT))
    (one,) = second["earlier"]
    assert (one["completion"], one["code"], one["verdict"]) == (WRONG, "print(2)", "wrong_answer")
    assert one["told"] == told("wrong_answer") and one["length"] == len(WRONG) and "expected" in one["message"]


# ---- tokens between two turns

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Letters:
    """A tokenizer with a token for each letter, and one for <|im_end|>."""

    def __init__(self, template):
        self.chat_template = template
        self.loaded = load_tokenizer(NANO)

    def apply_chat_template(self, messages, **options):
        self.loaded.chat_template = self.chat_template
        return self.loaded.apply_chat_template(messages, **options)

    def __call__(self, text, add_special_tokens=True):
        ids = [0] if add_special_tokens else []
        for n, part in enumerate(text.split("<|im_end|>")):
            ids += [END] * (n > 0) + [ord(letter) for letter in part]
        return {"input_ids": ids}


def test_a_turn_that_ended_is_not_ended_twice_and_one_that_was_cut_is_ended():
    rest = "\n<|im_start|>user\nNo.%\n<|im_start|>assistant\n"
    after = [END if letter == "%" else ord(letter) for letter in rest]
    assert encode_next(Letters(CHATML), [5, END], "No.", [END]) == after
    assert encode_next(Letters(CHATML), [5, 6], "No.", [END]) == [END, *after]


def test_the_tokens_between_are_those_of_the_whole_conversation():
    tokenizer = load_tokenizer(NANO)
    talk = [("user", "Add."), ("assistant", "print(1)"), ("user", "No."), ("assistant", "")]
    whole = "".join(f"<|{role}|>{text}<|end|>" for role, text in talk).removesuffix("<|end|>")
    begun = tokenizer("<|user|>Add.<|end|><|assistant|>print(1)<|end|>", add_special_tokens=False)["input_ids"]
    assert begun[-1] == END
    assert tokenizer.decode([*begun, *encode_next(tokenizer, begun, "No.", [END])]) == whole


def test_without_a_template_the_message_stands_between_lines():
    assert encode_next(Letters(None), [5], "No.", [END]) == [ord(letter) for letter in "\n\nNo.\n"]


def test_a_template_that_forgets_earlier_turns_is_refused():
    forgetful = "{{ messages[-1].content }}"
    with pytest.raises(ValueError, match=r"set grpo\.turns=1"):
        encode_next(Letters(forgetful), [5], "No.", [END])


# ---- the update


def with_turns(trained=True):
    """The fixture, in which every second response of a group had a try before, and a message."""
    draw = torch.Generator().manual_seed(6)
    groups = fixture()
    for group in groups:
        for row in group[::2]:
            ids, message = (torch.randint(2, 900, (count,), generator=draw).tolist() for count in (9, 5))
            row.earlier.append(Try(ids, [-1.0] * 9, False, "", Verdict("wrong_answer"), "", message, trained))
        for row in group:
            row.logprobs = [-1.0] * len(row.ids)
    return groups


class Scripted(TrlStageTrainer):
    def respond(self, numbers, problems, prompts, sampling, straggler_s, turns):
        groups = with_turns(self.config.grpo.trained_turns == "all")
        rows, seconds = [row for n in numbers for row in groups[n]], {"generation_s": 0.0, "judging_s": 0.0}
        return SimpleNamespace(all=lambda: (rows, seconds))


class Gradients(TrainerCallback):
    def __init__(self):
        self.found = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        self.found.append({name: value.grad.clone() for name, value in model.named_parameters()})


def direct(rows, config):
    """(loss, gradients) of one update, a response at a time: nothing is padded, packed or left out."""
    advantages = direct_advantages(rows, config)
    tokens = sum(sum(row.trained) for row in rows)
    model = plain_model()
    model.zero_grad()
    total = 0.0
    for row, advantage in zip(rows, advantages, strict=True):
        ids = torch.tensor([row.prompt + row.tokens])
        logits = model(ids).logits[:, len(row.prompt) - 1 : -1]
        logprobs = token_logprobs(logits, ids[:, len(row.prompt) :], TEMPERATURE)
        part = policy_loss(
            logprobs,
            logprobs.detach(),
            advantage[None],
            torch.tensor([row.trained]).float(),
            objective(config),
            ref_logprobs=logprobs.detach() if config.grpo.kl else None,
            tokens=tokens,
            sequences=len(rows),
            limit=LIMIT,
        ).loss
        part.backward()
        total += float(part.detach())
    return total, {name: value.grad.clone() for name, value in model.named_parameters()}


@pytest.mark.parametrize("preset", ["microcoder", "grpo", "dr_grpo", "gspo"])
@pytest.mark.parametrize("which", ["all", "last"])
@pytest.mark.parametrize("how", ["padded", "packed"])
def test_loss_and_gradients_are_those_of_single_rows(tmp_path, preset, which, how):
    config = settings(
        f"train.max_response_tokens={LIMIT}", "train.max_grad_norm=1e9", "train.steps=1", f"grpo.preset={preset}",
        "grpo.turns=2", f"grpo.trained_turns={which}", f"train.update={how}", "train.pass_tokens=90",
        "train.train_batch_size=4", "train.micro_batch_size=4",
    )  # fmt: skip
    prompts = [group[0].prompt for group in with_turns()]
    stage = Stage(1, TEMPERATURE, LIMIT)
    trainer = Scripted(config, stage, batches(config), NANO, PROBLEMS, prompts, None, str(tmp_path))
    trainer.remove_callback(PrinterCallback)
    start = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
    spy = Gradients()
    trainer.add_callback(spy)
    trainer.train()
    rows = trainer.batch.responses
    assert len(rows) == 4 * SAMPLES and any(row.earlier for row in rows)
    plain_model().load_state_dict(start, strict=False)
    loss, gradients = direct(rows, config)
    (found,) = spy.found
    assert distance(found, gradients) < 1e-5
    assert trainer.sums()["loss"] == pytest.approx(loss, rel=1e-4, abs=1e-6)


# ---- whole runs

TURNS = ("grpo.turns=2", "train.ppo_mini_batch_size=1")


@pytest.mark.long
@pytest.mark.parametrize("how", ["padded", "packed"])
def test_a_run_that_is_resumed_is_the_one_that_was_never_stopped(tmp_path, how):
    words = (*TURNS, f"train.update={how}")
    whole = trained(tmp_path / "whole", *words)
    trained(tmp_path / "run", *words, "train.steps=1")
    again = resumed(tmp_path / "run", *words)
    assert timeless(again) == timeless(whole)
    assert same(weights(tmp_path / "run"), weights(tmp_path / "whole"))
    for one in sorted((tmp_path / "whole" / "rollouts").glob("step_*")):
        assert (tmp_path / "run" / "rollouts" / one.name).read_bytes() == one.read_bytes()
    assert any(row.get("earlier") for row in read_rollouts(tmp_path / "whole", 2))
    assert max(line["grad_norm"] for line in whole) > 0


def test_padded_and_packed_runs_are_the_same_up_to_rounding(tmp_path):
    lines = [trained(tmp_path / how, "grpo.turns=2", f"train.update={how}") for how in ("padded", "packed")]
    for one, other in zip(*lines, strict=True):
        assert other["tokens"] == one["tokens"] and other["accuracy_first"] == one["accuracy_first"]
        for name in ("loss", "grad_norm"):
            assert other[name] == pytest.approx(one[name], rel=2e-3, abs=1e-6), name


def test_first_tries_are_those_of_a_run_with_one_turn(tmp_path):
    (one,), (two,) = (trained(tmp_path / str(n), "train.steps=1", f"grpo.turns={n}") for n in (1, 2))
    assert two["accuracy_first"] == one["accuracy"] < 1
    assert two["diversity"] == one["diversity"] and two["tokens"] > one["tokens"]
    plain, rows = (read_rollouts(tmp_path / str(n), 1) for n in (1, 2))
    for before, row in zip(plain, rows, strict=True):
        (first, *_) = [*row.get("earlier", []), row]
        assert (first["completion"], first["verdict"]) == (before["completion"], before["verdict"])
        assert ("earlier" in row) == (before["verdict"] != "accepted")


# ---- the plan


def test_turns_are_refused_where_nobody_has_tried_them():
    with pytest.raises(PlanError, match=r"auto, or grpo\.turns=1"):
        batches(load(None, ["grpo.turns=2", "rollout.engine=vllm"]))


def test_a_dry_run_counts_all_tries(tmp_path):
    one, two = (dict(describe(load(find("demo"), [f"grpo.turns={n}"]), tmp_path / "run").lines) for n in (1, 2))
    assert "2 turns (told: verdict; all tries trained)" in two["algorithm"] and "turns" not in one["algorithm"]
    assert "up to 160 tokens a try, 2 tries a response, 40,960 a step" in two["stage"]
    assert "up to 160 tokens a response, 20,480 a step" in one["stage"]


def test_memory_has_room_for_all_tries_and_what_is_told():
    shape = ModelShape(1536, 8960, 28, 12, 2, 128, 151936, 1_543_714_304)

    def need(*words):
        config = load(find("one-gpu"), ["train.update=packed", "train.max_response_tokens=1024", *words])
        return MemoryPlan(config, batches(config), shape, 512, Device(80 * GIB, gpu=True))

    one, two, more = need(), need("grpo.turns=2"), need("grpo.turns=3", "grpo.feedback=difference")
    assert (one.longest, two.longest) == (512 + 1024, 512 + 2048 + TOLD["verdict"])
    assert more.longest == 512 + 3 * 1024 + 2 * TOLD["difference"]
    assert two.parts()["pages"] > one.parts()["pages"]
