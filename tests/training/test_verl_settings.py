"""What verl is asked for: every setting reaches it, is ours to see to, or is refused by name. Needs no verl."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from microcoder.cli import main
from microcoder.config import load, settings
from microcoder.files import read_problems
from microcoder.schema import Problem, Test
from microcoder.training.plan import batches, stages_of
from microcoder.training.verl.session import ClusterError, enough, write_files
from microcoder.training.verl.settings import UNHEARD, compiled, lacking, metrics_of, refusals

MAPPED = {  # setting: another value than its default, which must change what verl is asked for
    "cluster.gpus_per_node": "4",
    "cluster.nodes": "2",
    "cluster.offload": "true",
    "cluster.tensor_parallel": "2",
    "data.max_prompt_tokens": "512",
    "grpo.clip": "cispo",
    "grpo.dual_clip": "3.0",
    "grpo.eps": "0.1",
    "grpo.eps_high": "0.3",
    "grpo.importance": "sequence",
    "grpo.importance_cap": "3.0",
    "grpo.kl": "0.01",
    "grpo.ratio": "sequence",
    "grpo.reduction": "dr_grpo",
    "grpo.samples": "4",
    "grpo.temperature": "0.7",
    "judge.also": "exact",
    "judge.memory_mb": "512",
    "judge.output_mb": "8",
    "judge.on": "http://127.0.0.1:8422",
    "judge.policy": "exact",
    "judge.queue": "8",
    "judge.remember": "9",
    "judge.reuse": "true",
    "judge.sandbox": "landlock",
    "judge.stop_at_first_failure": "false",
    "judge.time_factor": "2.0",
    "judge.time_limit_s": "3.0",
    "judge.workers": "3",
    "model.attention": "flash_attention_2",
    "model.dtype": "bfloat16",
    "model.gradient_checkpointing": "false",
    "model.lora_alpha": "4",
    "model.lora_rank": "8",
    "model.lora_targets": '["q_proj"]',
    "rollout.batch": "64",
    "rollout.memory": "0.6",
    "rollout.top_k": "50",
    "rollout.top_p": "0.9",
    "train.bf16": "false",
    "train.eval_max_response_tokens": "10000",
    "train.eval_temperature": "0.9",
    "train.eval_top_k": "20",
    "train.eval_top_p": "0.8",
    "train.eval_tries": "2",
    "train.lr": "1e-5",
    "train.max_grad_norm": "0.5",
    "train.max_response_tokens": "4096",
    "train.micro_batch_size": "2",
    "train.ppo_mini_batch_size": "16",
    "train.save_every": "5",
    "train.schedule": "linear",
    "train.seed": "3",
    "train.steps": "100",
    "train.trackers": '["wandb"]',
    "train.train_batch_size": "128",
    "train.warmup_steps": "5",
    "train.weight_decay": "0.1",
}
OURS = {  # read by our own code, in the trainer's process
    "cluster.address",
    "data.difficulty",
    "data.refuse",
    "data.solved",
    "data.style",  # prompts go to verl as tokens
    "model.chat",
    "data.test",
    "data.test_data",
    "data.test_size",
    "data.train",
    "data.train_size",
    "data.tried",
    "grpo.advantage_std",
    "grpo.control",
    "grpo.dynamic_sampling",
    "grpo.mask",
    "grpo.mask_outcome",
    "grpo.masked_in_group",
    "grpo.overlong_buffer",
    "grpo.preset",
    "grpo.repeat",
    "grpo.repeat_tokens",
    "grpo.rho",
    "model.name",
    "run.engine",
    "train.eval_every",
    "train.folder",
    "train.keep_checkpoints",
    "train.name",
    "train.stages",
}
REFUSED = {
    "grpo.feedback": "grpo.turns=2",  # of no use without it
    "grpo.trained_turns": "grpo.turns=2",  # of no use without it
    "grpo.turns": "grpo.turns=2",
    "rollout.ahead": "rollout.ahead=1",
    "rollout.engine": "rollout.engine=graph",
    "rollout.server": "rollout.server=http://there:8000",
    "rollout.straggler_s": "rollout.straggler_s=5.0",
    "run.layout": "run.layout=fsdp",
    "run.processes": "run.processes=2",
    "train.keep_best": "train.keep_best=true",
    "train.optimizer": "train.optimizer=adam8bit",
    "train.pass_tokens": "train.update=packed",  # of no use without it
    "train.update": "train.update=packed",
}


def asked(*changes):
    config = load(None, ["run.engine=verl", *changes])
    counts = batches(config, config.cluster.processes)
    return compiled(config, stages_of(config)[0], counts, "a-model", Path("runs/a"))


def test_every_setting_reaches_verl_or_is_ours_or_is_refused():
    assert {name for name, _ in settings()} == set(MAPPED) | OURS | set(REFUSED) | UNHEARD


@pytest.mark.parametrize("name", MAPPED)
def test_what_is_set_changes_what_verl_is_asked_for(name):
    assert asked(f"{name}={MAPPED[name]}") != asked()


@pytest.mark.parametrize(
    "change",
    [
        *sorted(set(REFUSED.values())),
        "rollout.engine=transformers",
        'train.trackers=["dagshub"]',
        "cluster.tensor_parallel=3",
        "cluster.nodes=2",
    ],
)
def test_what_verl_cannot_do_is_refused_by_the_name_of_the_setting(change):
    (found,) = refusals(load(None, ["run.engine=verl", change]))
    assert change.partition("=")[0] in found


def test_sglang_generates_where_it_is_asked_for_and_has_a_token_more_since_verl_leaves_one_free():
    ours, others = asked("rollout.engine=sglang"), asked("rollout.engine=vllm")
    changed = {name: (ours[name], others[name]) for name in ours if ours[name] != others[name]}
    assert changed.pop("actor_rollout_ref.rollout.name") == ("sglang", "vllm")
    ((name, (more, less)),) = changed.items()
    assert name.endswith("max_model_len") and more == less + 1
    assert any("package sglang" in lack for lack in lacking(load(None, ["run.engine=verl", "rollout.engine=sglang"])))


@pytest.mark.parametrize("change", ["cluster.gpus_per_node=0", "model.lora_rank=8"])
def test_where_sglang_was_not_tried_it_is_refused(change):
    (found,) = refusals(load(None, ["run.engine=verl", "rollout.engine=sglang", change]))
    assert change.partition("=")[0] in found and "rollout.engine=sglang" in found


@pytest.mark.parametrize(("gpus", "refused"), [(8, True), (0, False)])
def test_auto_needs_a_gpu_where_the_training_is_started_if_the_cluster_has_some(gpus, refused, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    config = load(None, ["run.engine=verl", 'grpo.temperature="auto"', f"cluster.gpus_per_node={gpus}"])
    assert any("microcoder calibrate" in lack for lack in lacking(config)) == refused


def test_the_defaults_are_not_refused():
    assert refusals(load(None, ["run.engine=verl"])) == []


@pytest.mark.parametrize(
    ("gpus", "there", "words"),
    [
        (4, {"GPU": 2, "CPU": 64}, "2 GPUs, but cluster.nodes=1 and cluster.gpus_per_node=4"),
        (0, {"CPU": 64}, "--num-gpus=1"),
        (0, {"GPU": 1, "CPU": 4}, "--num-cpus=15"),  # where TransferQueue would wait for ever
    ],
)
def test_a_cluster_that_is_too_small_is_refused_with_what_to_start(gpus, there, words):
    with pytest.raises(ClusterError, match=words):
        enough(load(None, ["run.engine=verl", f"cluster.gpus_per_node={gpus}"]), there)


def test_a_dry_run_prints_what_verl_would_be_asked_for(capsys, tmp_path):
    words = ["train", "demo", "run.engine=verl", "cluster.gpus_per_node=0", f"train.folder={tmp_path}", "--dry-run"]
    with pytest.raises(SystemExit):
        main(words)
    shown = capsys.readouterr().out
    assert "actor_rollout_ref.actor.clip_ratio_high = 0.28" in shown


def test_rows_name_their_problem_and_the_tests_stay_in_one_file(tmp_path):
    train = [Problem(f"p{n}", statement=f"say {n}", tests=[Test("", str(n))]) for n in range(2)]
    test = [Problem("p1", statement="say t", tests=[Test("", "t")])]  # a file of its own, so ids may come again
    write_files(tmp_path / "data", (train, [[5], [6, 7]]), [1, 0, 1], (test, [[8]]), eval_limit=9)
    rows = pq.read_table(tmp_path / "data" / "train.parquet").to_pylist()
    assert [row["extra_info"]["problem"] for row in rows] == ["train/p1", "train/p0", "train/p1"]
    assert [row["extra_info"]["prompt_ids"] for row in rows] == [[6, 7], [5], [6, 7]]
    others = pq.read_table(tmp_path / "data" / "others.parquet").to_pylist()
    about = [row["extra_info"] for row in others]
    assert [(row["index"], row["problem"]) for row in about] == [(-1, "train/p0"), (-2, "train/p1")]
    (row,) = pq.read_table(tmp_path / "data" / "test.parquet").to_pylist()
    assert (row["extra_info"]["limit"], row["extra_info"]["test"]) == (9, True)
    assert row["extra_info"]["problem"] == "test/p1"
    answers = {problem.id: problem.tests[0].output for problem in read_problems(tmp_path / "data" / "problems.jsonl")}
    assert answers == {"train/p0": "0", "train/p1": "1", "test/p1": "t"}


def test_a_steps_metrics_have_our_names_and_its_parts_add_up():
    theirs = {"actor/loss": 0.5, "actor/grad_norm": 2.0, "actor/lr": 1e-6, "actor/entropy": 1.0}
    counts = {"tokens": 200.0, "clip_low": 4.0, "clip_high": 10.0}
    theirs |= {f"actor/microcoder/{name}": value for name, value in counts.items()}
    clock = {"step": 20.0, "save_checkpoint": 2.0, "gen": 9.0, "old_log_prob": 1.0, "update_actor": 3.0}
    found = metrics_of(theirs, clock, {"generation_s": 7.0, "judging_s": 1.0, "judging_floor_s": 0.5})
    assert (found["loss"], found["grad_norm"], found["learning_rate"]) == (0.5, 2.0, 1e-6)
    assert (found["clip_low"], found["clip_high"]) == (0.02, 0.05)
    parts = ("generation_s", "judging_s", "update_s", "other_s")
    assert sum(found[part] for part in parts) == pytest.approx(found["step_s"]) == 18.0
    assert "kl" not in found


@pytest.mark.parametrize(
    ("gpus", "chosen", "asks"),
    [(0, "auto", None), (8, "auto", "token"), (8, "none", None), (0, "token", "token"), (8, "sequence", "sequence")],
)
def test_tokens_are_weighed_as_the_settings_say(gpus, chosen, asks):
    found = asked(f"cluster.gpus_per_node={gpus}", f"grpo.importance={chosen}", "grpo.importance_cap=1.5")
    assert found.get("algorithm.rollout_correction.rollout_is") == asks
    assert found["algorithm.rollout_correction.rollout_is_threshold"] == 1.5
