"""The settings, section by section. The field descriptions are the only copy of the help text."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..schema import Policy


class Section(BaseModel):
    # strict: "4" is not 4, so a quoted number in a file is a mistake that is named rather than guessed at
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class JudgeConfig(Section):
    workers: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto",
        description="How many programs are judged at once; auto: one for each core this process may "
        "use, or for each that the service or the cluster of judge.on has.",
    )
    policy: Policy = Field(
        default="robust",
        description="How outputs are compared. exact: LiveCodeBench's rule; robust: every comparison that cannot "
        "accept a wrong answer; paper: also the order-free comparisons of the paper.",
    )
    also: Literal["", "exact", "robust", "paper"] = Field(
        default="",
        description="A second policy for the same executions: its verdicts are recorded beside (accuracy_also, "
        "test_accuracy_also) and earn no reward.",
    )
    stop_at_first_failure: bool = Field(
        default=True,
        description="Stop a program at its first failed test (enough for a 0/1 reward); false: run all tests.",
    )
    reuse: bool = Field(
        default=False,
        description="Run a candidate's tests in one process; faster, weaker promise: one test can affect the next.",
    )
    time_limit_s: float = Field(
        default=6.0,
        gt=0,
        le=86400,
        description="CPU seconds for each test of a problem that names no limit of its own.",
    )
    time_factor: float = Field(
        default=1.0,
        gt=0,
        le=1000,
        description="Multiplies every problem's time limit, for a machine slower than the judges'.",
    )
    memory_mb: int = Field(
        default=1024,
        ge=16,
        le=1 << 20,
        description="Memory in MiB for each test of a problem that names no limit of its own.",
    )
    output_mb: int = Field(default=16, ge=1, le=4096, description="The most output in MiB that one test may write.")
    sandbox: Literal["auto", "full", "landlock", "rlimits"] = Field(
        default="auto",
        description="The walls around a program. full: namespaces, seccomp, Landlock and limits; landlock: the same "
        "without namespaces; rlimits: limits only, which stops accidents, not attacks, and so must be asked for by "
        "name; auto: full where it works, else landlock. `microcoder doctor` says what works here.",
    )
    queue: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto",
        description="How many programs may wait for a worker before reading pauses; auto: 4 for each worker.",
    )
    remember: int = Field(
        default=0, ge=0, le=10_000_000,
        description="How many verdicts are kept: later steps and evaluations do not run the same program for the "
        "same tests again. For runs over few problems; 0: none.",
    )  # fmt: skip
    on: str = Field(
        default="here",
        pattern=r"^(here|https?://.+|ray:.+)$",
        description="Where programs are judged. here: on this machine; http://HOST:8422: by `microcoder serve` there "
        "(MICROCODER_TOKEN in the environment holds its token); ray:ADDRESS: on a Ray cluster, ray:auto being the one "
        "this machine belongs to.",
    )

    def options(self) -> dict[str, Any]:
        """Return the arguments for `open_judge`; `auto` becomes a number where it is known, else None."""
        workers = self.workers if self.workers != "auto" else usable_cores() if self.on == "here" else None
        queue = self.queue if self.queue != "auto" else 4 * workers if workers else None
        return {**self.model_dump(), "workers": workers, "queue": queue}


def usable_cores() -> int:
    """Number of cores that this process may use; fewer than the machine's in a container or under taskset."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ModelConfig(Section):
    name: str = Field(
        default="nano",
        description="nano, smollm2-135m, a hub id such as Qwen/Qwen3-4B-Instruct-2507, a folder, a run (runs/a), or a "
        "GGUF file (model.gguf).",
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto",
        description="The weights' type; auto: float32. The update is made in bfloat16 where the GPU can (train.bf16). "
        "bfloat16: half the memory; updates are rounded at random, so that small ones count in the mean.",
    )
    lora_rank: int = Field(default=0, ge=0, le=1024, description="Rank of a LoRA adapter; 0: train all weights.")
    lora_alpha: int = Field(default=0, ge=0, description="Scale of the adapter; 0: twice the rank.")
    lora_targets: str | list[str] = Field(
        default="all-linear", description="The layers that get an adapter: all-linear, or a list of their names."
    )
    gradient_checkpointing: bool | Literal["auto"] = Field(
        default="auto",
        description="Compute activations twice instead of keeping them: less memory, a slower update; auto: only where "
        "a GPU has no room for a pass otherwise, and always with verl.",
    )
    attention: str = Field(
        default="auto", description="Attention by transformers' name (sdpa, flash_attention_2); auto: its choice."
    )
    chat: dict[str, bool | int | float | str] = Field(
        default={},
        description="Arguments for the model's chat template, such as {enable_thinking = false}; on the command line "
        "model.chat.enable_thinking=false. Names that the template does not use are refused.",
    )


class DataConfig(Section):
    train: str = Field(
        default="starter", description="Problems to train on: starter, or a .jsonl, .json or .parquet file of problems."
    )
    test: str = Field(
        default="starter",
        description="Problems for the evaluations: starter (its test split), a file, none, held-out (data.test_size "
        "problems of data.train, which are then not trained on), or a suite of `microcoder eval`: humanevalplus, "
        "mbppplus, humaneval, mbpp, livecodebench.",
    )
    test_data: str = Field(
        default="",
        description="The file or folder of the suite that data.test names, as --data of `microcoder eval`; empty: the "
        "hub's. Any number of problems in it will do.",
    )
    train_size: int = Field(
        default=2000,
        ge=1,
        description="How many problems starter makes; of a file with more, as many are drawn, at random.",
    )
    test_size: int = Field(default=100, ge=1, description="The same for the test problems.")
    difficulty: list[float] = Field(
        default=[],
        max_length=2,
        description="Train only on problems whose difficulty_score lies in [low, high]; for starter that is the depth, "
        "1 to 6. Empty: all.",
    )
    tried: str = Field(
        default="",
        description="What the model can do before training, to choose problems by: a folder that `microcoder eval "
        "MODEL --suite FILE -n 16 --temperature 1 -o FOLDER` wrote, FILE being data.train. Empty: all are used.",
    )
    solved: list[float] = Field(
        default=[0.01, 0.99],
        min_length=2,
        max_length=2,
        description="With data.tried: train only on problems of whose tries a share in [low, high] was right. Problems "
        "that are always or never solved give no signal.",
    )
    refuse: list[str] = Field(
        default=["many_answers"],
        description="Train on no problem with one of these tags. many_answers: several outputs are right, no checker "
        "knows them all; unverified: no solution of it was ever run, so its tests may be wrong.",
    )
    style: Literal["code", "reason"] = Field(
        default="code",
        description="What prompts ask for. code: the program; reason: the approach in plain words, then the program.",
    )
    max_prompt_tokens: int = Field(
        default=2048, ge=1, description="Problems with a longer prompt are left out, and counted."
    )


class RolloutConfig(Section):
    engine: Literal["auto", "graph", "transformers", "vllm", "sglang"] = Field(
        default="auto",
        description="What generates. graph: CUDA graphs, on a GPU; transformers: anywhere; vllm: where installed; "
        "sglang: the same, with run.engine = verl only; "
        "auto: graph where the model can be captured, else transformers.",
    )
    batch: int = Field(
        default=512, ge=1, description="The most responses that are generated at once; fewer need less memory."
    )
    memory: float = Field(
        default=0.4,
        gt=0,
        lt=1,
        description="The share of a GPU's memory that keys and values may take. With vLLM: the share "
        "that vLLM may take, its weights included.",
    )
    server: str = Field(
        default="",
        description="With engine = vllm: the address of a vLLM server that generates, such as http://127.0.0.1:8000; "
        "empty: vLLM runs in the training's processes.",
    )
    ahead: int = Field(
        default=0,
        ge=0,
        le=1,
        description="Steps by which responses are older than the weights that they train. 0: a step samples from the "
        "newest weights; 1: while a step trains, the next one's responses are sampled and judged.",
    )
    top_p: float = Field(default=1.0, gt=0, le=1, description="Sample from the smallest set of tokens with this mass.")
    top_k: int = Field(default=0, ge=0, description="Sample from this many likeliest tokens; 0: all.")
    straggler_s: float = Field(
        default=0.0,
        ge=0,
        description="The most seconds to wait for verdicts once generation is over. What is still being judged then is "
        "cut: it is recorded, it has no reward, and its whole group gets advantage 0; 0: wait for all.",
    )


class GrpoConfig(Section):
    preset: Literal["grpo", "grpo_plus", "dapo", "dr_grpo", "gspo", "cispo", "dppo", "microcoder"] = Field(
        default="microcoder",
        description="The algorithm by name. It sets eps, eps_high, dual_clip, kl, advantage_std, reduction, ratio, "
        "clip, mask, dynamic_sampling and overlong_buffer; those that are given here win. No preset sets other keys, "
        "such as rho, mask_outcome, masked_in_group, repeat and repeat_tokens, which say what a mask does.",
    )
    samples: int = Field(default=8, ge=2, description="Responses to each problem: the group that is compared.")
    temperature: Annotated[float, Field(gt=0, le=10)] | Literal["auto"] = Field(
        default=1.2,
        description="Sampling temperature, also that of the ratio; auto: T(D) chooses it before training, by sampling "
        "at several.",
    )
    eps: float = Field(default=0.2, gt=0, le=1, description="The ratio is clipped below at 1 - eps.")
    eps_high: float = Field(default=0.28, gt=0, description="The ratio is clipped above at 1 + eps_high.")
    dual_clip: float = Field(
        default=0.0, ge=0, description="Bounds a bad response's loss at this many times its advantage; 0: no bound."
    )
    kl: float = Field(default=0.0, ge=0, description="Weight of the KL (k3) to the starting model; 0: no reference.")
    advantage_std: bool = Field(default=True, description="Divide a group's advantages by its standard deviation.")
    reduction: Literal["token_mean", "sequence_mean", "dr_grpo"] = Field(
        default="token_mean",
        description="What the loss is averaged over: tokens, each response's tokens first, or responses times limit.",
    )
    ratio: Literal["token", "sequence"] = Field(
        default="token",
        description="What the ratio p_new / p_old is of. token: each token; sequence: the whole response, as the "
        "geometric mean over its tokens. A sequence's ratio needs narrower bounds.",
    )
    clip: Literal["ppo", "cispo", "divergence"] = Field(
        default="ppo",
        description="What bounds do. ppo: a token beyond them has no gradient; cispo: it keeps one, and its ratio is "
        "the bound; divergence: eps and eps_high bound |p_new - p_old| instead of the ratio.",
    )
    mask: Literal["none", "all", "conditional"] = Field(
        default="conditional",
        description="Truncated responses whose advantage is zeroed. conditional: those with an outcome in mask_outcome "
        "that do not end in repetition, each with probability rho.",
    )
    rho: float = Field(default=0.2, ge=0, le=1, description="Share of the eligible responses that is masked.")
    mask_outcome: Literal["incorrect", "non_incorrect", "correct", "any"] = Field(
        default="incorrect", description="Outcomes that the conditional mask may mask."
    )
    masked_in_group: bool = Field(
        default=True,
        description="Masked responses count in the mean and deviation of their group (the paper). false: they leave "
        "it, so that the others are compared with each other alone.",
    )
    repeat: Literal["literal", "periodic"] = Field(
        default="literal",
        description="Repetition: the last m tokens equal the m before (literal), or the tail has some period up to m.",
    )
    repeat_tokens: int = Field(
        default=0, ge=0, description="m in grpo.repeat; 0: 128 for limits from 4096 tokens on, else max(8, limit / 32)."
    )
    dynamic_sampling: int = Field(
        default=0,
        ge=0,
        description="Rounds in which groups without signal are replaced by groups of new problems; 0: none.",
    )
    overlong_buffer: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        default=0,
        description="A response loses up to 1 reward over so many last tokens before the limit; auto: a fifth of it.",
    )
    importance: Literal["auto", "none", "token", "sequence"] = Field(
        default="auto",
        description="Weigh tokens by p_trainer / p_sampler, by their own ratio or by that of the whole response, at "
        "most importance_cap; auto: token with rollout.engine = vllm or rollout.ahead, else none. token and sequence "
        "need train.update = packed with run.engine = trl.",
    )
    importance_cap: float = Field(default=2.0, gt=0, description="The largest weight of grpo.importance.")
    turns: int = Field(
        default=1,
        ge=1,
        le=8,
        description="Tries at most for each response. A try that fails is followed by the judge's message and another "
        "one; the reward is that of the last try. Evaluations have one try.",
    )
    feedback: Literal["nothing", "verdict", "error", "difference"] = Field(
        default="verdict",
        description="What a model is told of a failed try, where there are turns. nothing: that it is not right; "
        "verdict: the kind of failure; error: also its exception or syntax error; difference: the judge's whole "
        "message, which holds expected outputs, so that a second try can print them.",
    )
    trained_turns: Literal["all", "last"] = Field(
        default="all",
        description="Whose tokens are trained on, where there are turns: all tries', by the reward of the last, or the "
        "last try's alone. What the model is told between them never is.",
    )
    control: Literal["none", "shuffled_rewards"] = Field(
        default="none",
        description="A control experiment. shuffled_rewards: rewards are shuffled among a step's responses.",
    )


class StageConfig(Section):
    at_step: int = Field(ge=2, description="The first step of the stage.")
    temperature: float | None = Field(default=None, gt=0, le=10, description="The new temperature.")
    max_response_tokens: int | None = Field(default=None, ge=1, description="The new limit.")


class TrainConfig(Section):
    name: str = Field(
        default="", pattern=r"^[^/]*$", description="Name of the run's folder; empty: that of the configuration."
    )
    folder: str = Field(default="runs", description="Where run folders are made.")
    steps: int = Field(default=300, ge=1, description="Steps; one is a batch of problems sampled, judged, trained on.")
    train_batch_size: int = Field(default=64, ge=1, description="Problems in a step.")
    ppo_mini_batch_size: int = Field(
        default=0, ge=0, description="Problems in an update; train_batch_size / this = updates per step; 0: one update."
    )
    update: Literal["auto", "packed", "padded"] = Field(
        default="auto",
        description="How the update computes. packed: each prompt once for all its responses, no padding, whole "
        "problems in an update; padded: rows of prompt and response as TRL has them, single responses in an update; "
        "auto: packed on a GPU for models of the kinds of Llama, Qwen2 and Qwen3, else padded.",
    )
    pass_tokens: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto",
        description="Tokens in one packed pass on one device: memory, not results; auto: as many as there is room for, "
        "up to 32768 on a GPU and 16384 on a CPU.",
    )
    micro_batch_size: int = Field(
        default=8, ge=1, description="Responses in one padded pass on one device: memory, not results."
    )
    max_response_tokens: int = Field(default=8192, ge=1, description="The response limit.")
    stages: list[StageConfig] = Field(
        default=[],
        description="Later stages: [{at_step = 140, temperature = 1.2}, {at_step = 260, max_response_tokens = 8192}].",
    )
    optimizer: Literal["adamw", "adam8bit"] = Field(
        default="adamw",
        description="adamw: states in float32, 8 bytes a weight; adam8bit: the same with states of 8 bits, 2 bytes.",
    )
    lr: float = Field(default=1e-6, gt=0, le=1, description="Learning rate.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="How the learning rate goes after the warm-up."
    )
    warmup_steps: int = Field(default=0, ge=0, description="Steps over which the learning rate rises from 0.")
    weight_decay: float = Field(default=0.0, ge=0, description="AdamW's weight decay.")
    max_grad_norm: float = Field(default=1.0, gt=0, description="Gradients are scaled down to this norm.")
    bf16: bool | Literal["auto"] = Field(
        default="auto", description="Mixed precision in bfloat16; auto: where a GPU supports it."
    )
    float32_head: bool = Field(
        default=True,
        description="Padded passes: compute logits in float32 even with bf16; rounded to bfloat16 they are off by "
        "hundredths. Packed passes always have logits in float32, as sampling does.",
    )
    seed: int = Field(default=0, ge=0, description="Everything random follows from it.")
    eval_every: int = Field(default=20, ge=0, description="Steps between evaluations; 0: only before and after.")
    eval_tries: int = Field(default=4, ge=1, description="Responses to each test problem; accuracy is their mean.")
    eval_max_response_tokens: int = Field(
        default=0, ge=0, description="The response limit of evaluations; 0: that of training at the time."
    )
    eval_temperature: float = Field(default=0.6, gt=0, le=10, description="Sampling temperature of evaluations.")
    eval_top_p: Annotated[float, Field(gt=0, le=1)] | Literal["auto"] = Field(
        default="auto", description="rollout.top_p of evaluations; auto: that of training."
    )
    eval_top_k: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        default="auto", description="rollout.top_k of evaluations, 0: all tokens; auto: that of training."
    )
    save_every: int = Field(default=20, ge=1, description="Steps between checkpoints; --resume goes on from the last.")
    keep_checkpoints: int = Field(default=2, ge=1, description="How many checkpoints are kept, the newest ones.")
    keep_best: bool = Field(
        default=False,
        description="Keep also the checkpoint whose test accuracy is the best, of those at whose step there was an "
        "evaluation (trl).",
    )
    trackers: list[str] = Field(
        default=[], description="Experiment trackers by name, through TRL: tensorboard, trackio, wandb."
    )


class RunConfig(Section):
    engine: Literal["trl", "verl"] = Field(
        default="trl",
        description="What trains. trl: all GPUs of this machine, or its CPU; verl: a Ray cluster, from an "
        "environment of its own (make verl).",
    )
    processes: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto",
        description="Training processes on this machine with trl; auto: one for each GPU that CUDA_VISIBLE_DEVICES "
        "shows, or one on the CPU. Without a GPU a number gives so many processes on the CPU, for tests.",
    )
    layout: Literal["auto", "replicated", "fsdp", "zero1", "zero2", "zero3"] = Field(
        default="auto",
        description="What each of several processes holds, with trl. replicated: everything; fsdp: its share of "
        "weights, gradients and optimizer (FSDP2); zero1, zero2, zero3: DeepSpeed's shares of the optimizer, then of "
        "gradients, then of weights (pip install 'microcoder[zero]'); auto: replicated if that fits, else fsdp.",
    )


class ClusterConfig(Section):
    """Settings of the Ray cluster, for run.engine = verl."""

    nodes: int = Field(default=1, ge=1, description="Machines that train, with verl.")
    gpus_per_node: int = Field(
        default=8, ge=0, description="GPUs of each; 0: one process on each machine's CPU, for small models and tests."
    )
    address: str = Field(
        default="",
        description="Address of a Ray cluster; auto: the one that this machine is part of; empty: start one here.",
    )
    tensor_parallel: int = Field(default=1, ge=1, description="GPUs that hold one copy of the model to generate with.")
    offload: bool = Field(
        default=False, description="Keep weights and optimizer in main memory while responses are generated."
    )

    @property
    def processes(self) -> int:
        """Number of training processes: one for each GPU, or for each machine without GPUs."""
        return self.nodes * max(1, self.gpus_per_node)


class Config(Section):
    model: ModelConfig = Field(default=ModelConfig(), description="The model that is trained.")
    data: DataConfig = Field(default=DataConfig(), description="Problems to train and to evaluate on.")
    grpo: GrpoConfig = Field(default=GrpoConfig(), description="The algorithm.")
    train: TrainConfig = Field(default=TrainConfig(), description="Batches, limits, stages, learning rate.")
    rollout: RolloutConfig = Field(default=RolloutConfig(), description="How responses are generated.")
    judge: JudgeConfig = Field(default=JudgeConfig(), description="How programs are judged.")
    run: RunConfig = Field(default=RunConfig(), description="Which engine trains.")
    cluster: ClusterConfig = Field(default=ClusterConfig(), description="Where verl trains.")

    def eval_top(self) -> tuple[float, int]:
        """top_p and top_k of evaluations."""
        train, rollout = self.train, self.rollout
        top_p = rollout.top_p if train.eval_top_p == "auto" else train.eval_top_p
        return top_p, rollout.top_k if train.eval_top_k == "auto" else train.eval_top_k
