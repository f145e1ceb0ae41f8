"""Responses that are sampled one step ahead: which weights sample what, and what a resumed run trains on."""

from __future__ import annotations

import pytest
from served_model import Served, serving
from train_runs import Listening, resumed, same, settings, timeless, trained, weights
from transformers import Trainer

from microcoder.runs import RunError, read_info, read_metrics
from microcoder.training.plan import PlanError, batches, importance_of, lacking, settled

RUN = (
    "train.max_response_tokens=24",
    "train.steps=3",
    "train.save_every=1",
    "train.keep_checkpoints=9",
    "judge.time_limit_s=30",  # on a busy machine a right program may take longer than its problem allows
)


class Stopping(Listening):
    """Ends a run when a step is done, before its checkpoint is written."""

    def __init__(self, step):
        super().__init__()
        self.last = step

    def step(self, metrics):
        if metrics["step"] == self.last:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def ahead(tmp_path_factory):
    path = tmp_path_factory.mktemp("ahead") / "run"
    return path, trained(path, *RUN, "rollout.ahead=1")


def test_the_first_step_samples_its_own_and_each_later_one_trains_on_responses_one_step_old(ahead):
    path, lines = ahead
    assert [line["staleness"] for line in lines] == [0, 1, 1]
    assert all(0 < line["effective_sample_size"] <= 1.0001 for line in lines)
    assert lines[0]["mismatch_mean"] < 1e-4 < min(line["mismatch_mean"] for line in lines[1:])  # the policy had moved
    kept = [(path / "checkpoints" / f"checkpoint-{n}" / "ahead-0.json.gz").exists() for n in (1, 2, 3)]
    assert kept == [True, True, False]  # the last step has no next


@pytest.mark.long
def test_on_the_first_two_steps_the_same_responses_are_sampled_from_the_same_weights_as_on_policy(ahead, tmp_path):
    """Step 1 is on-policy in both. Step 2's are drawn by the same noise, but from the weights before step 1."""
    on_policy = trained(tmp_path / "run", *RUN, "train.steps=2", "train.update=packed", "grpo.importance=token")
    first, second = ahead[1][0], ahead[1][1]
    for name in ("reward", "length_mean", "diversity", "loss", "grad_norm"):
        assert first[name] == on_policy[0][name], name
    assert "staleness" not in on_policy[1] and second["mismatch_mean"] > 10 * on_policy[1]["mismatch_mean"]


def test_a_resumed_run_trains_on_the_responses_that_were_sampled_ahead_bit_for_bit(ahead, tmp_path):
    path, lines = ahead
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "run", *RUN, "rollout.ahead=1", observer=Stopping(2))
    again = resumed(tmp_path / "run", *RUN, "rollout.ahead=1")
    assert same(weights(tmp_path / "run"), weights(path))
    assert repr(timeless(again)) == repr(timeless(lines))  # as text: what is not a number equals nothing


def test_a_checkpoint_is_whole_only_when_it_has_the_next_steps_responses(monkeypatch, tmp_path):
    seen, whole = [], Trainer._save_checkpoint

    def spy(trainer, *args, **kwargs):
        seen.append(trainer._kept_ahead().exists())
        whole(trainer, *args, **kwargs)

    monkeypatch.setattr(Trainer, "_save_checkpoint", spy)
    trained(tmp_path / "run", *RUN, "train.steps=2", "rollout.ahead=1")
    assert seen == [True, False]  # the last step has no next


def test_a_server_samples_the_next_step_from_weights_that_were_brought_before_it(tmp_path):
    served = Served()
    with serving(served) as url:
        words = ("rollout.engine=vllm", f"rollout.server={url}", "rollout.ahead=1")
        lines = trained(tmp_path / "run", *RUN, *words)
        rows = 2 * 4  # problems x samples
        # before step 1, which samples its own and the next; before step 2, which samples step 3; step 3 has no next
        assert served.loaded == [0, 2 * rows] and len(served.asked) == 3 * rows
        assert [line["staleness"] for line in lines] == [0, 1, 1]
        apart = [line["mismatch_mean"] for line in lines if "mismatch_mean" in line]  # where there was any signal
        assert apart and max(apart) < 0.05  # bfloat16 on the way
        assert read_info(tmp_path / "run")["vllm"] == {"server": url, "server_model": "nano", "weights_by": "folder"}
    assert not list((tmp_path / "run" / "weights").iterdir())


def test_a_run_whose_server_is_gone_says_how_to_go_on_and_goes_on_when_it_is_back(tmp_path):
    served = Served()
    answer = served.answer
    with serving(served) as url:
        words = (*RUN, "train.steps=2", "rollout.engine=vllm", f"rollout.server={url}")
        served.answer = lambda path, asked: (
            None if path == "/v1/completions" and served.loaded[1:] else answer(path, asked)
        )
        with pytest.raises(RunError, match=r"server is gone: .*status 404.*start it again.*--resume"):
            trained(tmp_path / "run", *words)
        assert len(read_metrics(tmp_path / "run")) == 1
        served.answer = answer
        assert [line["step"] for line in resumed(tmp_path / "run", *words)] == [1, 2]


def test_auto_means_weighed_tokens_and_packed_passes_where_responses_are_not_the_policys_own():
    for words in (["rollout.ahead=1"], ["rollout.engine=vllm"]):
        config = settled(settings(*words))
        assert (importance_of(config), config.train.update) == ("token", "packed")
    assert importance_of(settings()) == "none"


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["rollout.ahead=1", "train.update=padded"], r"rollout.ahead=1 is made for packed passes only"),
        (["rollout.engine=vllm", "train.update=padded"], r"auto means with rollout.engine=vllm.*grpo.importance=none"),
        (["rollout.engine=sglang"], r"run.engine=verl only; set rollout.engine=vllm"),
        (["rollout.server=http://a:1"], r"rollout.engine=auto; set rollout.engine=vllm"),
        (["rollout.engine=vllm", "rollout.server=a:1"], r"is no address; write it like http://"),
        (["rollout.engine=vllm", "cluster.tensor_parallel=2"], r"--tensor-parallel-size, and set rollout.server"),
    ],
)
def test_ways_of_sampling_that_do_not_go_together_are_refused(words, refusal):
    with pytest.raises(PlanError, match=refusal):
        batches(settings(*words))


def test_a_server_needs_neither_vllm_nor_a_gpu_here():
    assert any("vllm" in lack for lack in lacking(settings("rollout.engine=vllm"), gpu=False))
    assert lacking(settings("rollout.engine=vllm", "rollout.server=http://a:1"), gpu=False) == []
