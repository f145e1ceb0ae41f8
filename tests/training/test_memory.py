"""The plan of memory: against what autograd saves, what a GPU was measured to need, and what follows from it."""

from __future__ import annotations

import re

import pytest
import torch
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModelForCausalLM,
    LlamaConfig,
    Qwen2Config,
    Qwen3Config,
)
from transformers.masking_utils import sdpa_mask

from microcoder.config import find, load
from microcoder.training import memory
from microcoder.training import model_shape as shapes
from microcoder.training.memory import (
    ENOUGH_TOKENS,
    GIB,
    MOST_TOKENS,
    MOST_TOKENS_CPU,
    Device,
    MemoryPlan,
    ModelShape,
    peak,
)
from microcoder.training.plan import batches, settled

CODER = ModelShape(1536, 8960, 28, 12, 2, 128, 151936, 1_543_714_304, adapted=28 * (9 * 1536 + 2 * 256 + 3 * 8960))
FOUR = next(shape for shape in shapes.QWEN3 if shape.parameters == 4_000_000_000)
H200 = Device(int(139.8 * GIB), gpu=True)
H100 = Device(80 * GIB, gpu=True)


def need(shape=CODER, device=H200, *words, prompt=1024):
    config = load(find("one-gpu"), ["train.update=packed", *words])
    return MemoryPlan(config, batches(config), shape, prompt, device)


# --- the formula


class Flash(torch.autograd.Function):
    """Saves what flash attention saves."""

    @staticmethod
    def forward(ctx, q, k, v):
        out = torch.zeros_like(q)
        ctx.save_for_backward(q, k, v, out, torch.zeros(q.shape[:2]))
        return out


def attend(module, q, k, v, mask, **_):
    return Flash.apply(*(x[0].transpose(0, 1).to(v.dtype) for x in (q, k, v)))[None], None


class Norm(torch.autograd.Function):
    """Saves what the fused norm saves."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.to(torch.bfloat16, copy=True)


class Gated(torch.autograd.Function):
    """Saves what the fused gate saves."""

    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return gate * up


def fuse(model):
    """What `fused.fuse` does on a GPU, as far as memory goes."""
    for part in model.modules():
        if hasattr(part, "variance_epsilon"):
            part.forward = lambda x, part=part: Norm.apply(x, part.weight)
        if hasattr(part, "gate_proj"):
            part.forward = lambda x, part=part: part.down_proj(Gated.apply(part.gate_proj(x), part.up_proj(x)))


def saved(kind, dtype, autocast, rank, layers, fused=False):
    """Bytes that a forward pass of 64 tokens saves: of activations, and of casts of weights."""
    sizes = {"hidden_size": 96, "intermediate_size": 560, "num_attention_heads": 6, "num_key_value_heads": 1}
    config = kind(**sizes, head_dim=16, num_hidden_layers=layers, vocab_size=80, tie_word_embeddings=True)
    AttentionInterface.register("keeping", attend)
    AttentionMaskInterface.register("keeping", sdpa_mask)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.set_attn_implementation("keeping")
    shape = ModelShape.of(model)
    if rank:
        peft = pytest.importorskip("peft")
        adapter = peft.LoraConfig(task_type="CAUSAL_LM", r=rank, target_modules="all-linear")
        model = peft.get_peft_model(model, adapter)
        assert sum(p.numel() for p in model.parameters() if p.requires_grad) == rank * shape.adapted
    if fused:
        fuse(model)
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    found = {}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in own:
            found[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x), torch.autocast("cpu", enabled=autocast):
        model.get_decoder()(input_ids=torch.zeros(1, 64, dtype=torch.long), use_cache=False)
    sizes = {True: 0, False: 0}
    for tensor in found.values():
        sizes[64 in tensor.shape] += tensor.untyped_storage().nbytes()
    return shape, sizes[True], sizes[False]


@pytest.mark.filterwarnings("ignore:mkldnn_matmul")
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("dtype", "autocast", "fused"),
    [
        ("float32", True, False),
        ("bfloat16", True, False),
        ("float32", False, False),
        ("float32", True, True),
        ("bfloat16", True, True),
    ],
)
@pytest.mark.parametrize("kind", [LlamaConfig, Qwen2Config, Qwen3Config])
def test_a_layer_keeps_what_autograd_saves(kind, dtype, autocast, fused, rank):
    few, many = (saved(kind, getattr(torch, dtype), autocast, rank, layers, fused) for layers in (1, 3))
    words = [
        f"model.dtype={dtype}",
        f"model.lora_rank={rank}",
        f"train.bf16={str(autocast).lower()}",
        f"train.update={'packed' if fused else 'padded'}",
    ]
    plans = [need(part[0], H200, *words) for part in (few, many)]
    one, three = (plan.a_pass(64, False) for plan in plans)
    activations, casts = ((many[n] - few[n]) / 2 for n in (1, 2))
    assert (three - one) / 2 == pytest.approx(activations + casts, rel=0.02)


def test_the_shape_of_a_model_is_read_from_it():
    config = Qwen2Config(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=512, tie_word_embeddings=True,
    )  # fmt: skip
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    found = ModelShape.of(model)
    linear = [part for part in model.model.modules() if isinstance(part, torch.nn.Linear)]
    assert (found.heads, found.kv_heads, found.width, found.inner, found.qk_norm) == (4, 2, 16, 128, False)
    assert found.linear == sum(part.weight.numel() for part in linear)
    assert found.parameters == sum(weight.numel() for weight in model.parameters())
    assert ModelShape.of(model, ["q_proj"]).adapted == 2 * (64 + 64)


@pytest.mark.parametrize(("recompute", "measured"), [("false", 74.5), ("true", 25.0)])
def test_a_pass_of_1_5b_is_what_was_measured_on_an_h200(monkeypatch, recompute, measured):
    """Weights, gradients and a pass of 16,384 tokens, before kernels were fused and logits came in smaller pieces."""
    monkeypatch.setitem(memory.KEPT, ("fused mixed", False), memory.KEPT["mixed", False])
    monkeypatch.setattr(memory, "HEAD_GRADIENT", 4)
    monkeypatch.setattr(memory, "HEAD_TOKENS", 4096)
    monkeypatch.setattr(memory, "HEAD_BYTES", 16)
    words = [f"model.gradient_checkpointing={recompute}", "train.pass_tokens=16384"]
    parts = need(CODER, H200, *words).parts()
    found = sum(parts[name] for name in ("weights", "gradients", "pass")) / GIB
    assert found == pytest.approx(measured, rel=0.1)


def test_the_sampler_gives_its_memory_to_the_update_where_both_do_not_fit():
    words = ["train.pass_tokens=16384", "model.gradient_checkpointing=false", "train.max_response_tokens=4096"]
    plans = [need(CODER, Device(gib * GIB, gpu=True), *words, "rollout.memory=0.3") for gib in (141, 90)]
    assert [plan.crowded for plan in plans] == [False, True]
    assert all(peak(plan.parts()) < plan.device.usable for plan in plans)


def test_optimizer_and_adapter_and_reference_and_engine_are_parts():
    plain = need().parts()
    assert plain["optimizer"] == 8 * CODER.parameters == 2 * plain["gradients"] == 2 * plain["weights"]
    small = need(CODER, H200, "train.optimizer=adam8bit").parts()
    assert plain["optimizer"] / small["optimizer"] == pytest.approx(3.94, rel=0.01)
    assert plain["reference"] == 0 < need(CODER, H200, "grpo.kl=0.001").parts()["reference"] == plain["weights"]
    lora = need(CODER, H200, "grpo.kl=0.001", "model.lora_rank=8").parts()
    assert lora["reference"] == 0
    assert lora["optimizer"] == 2 * lora["gradients"] == 8 * 8 * CODER.adapted
    assert plain["sampling copy"] == 2 * CODER.parameters
    assert need(CODER, H200, "rollout.engine=transformers").parts()["sampling copy"] == 0
    assert need(CODER, Device(64 * GIB, gpu=False)).parts()["CUDA"] == 0 < plain["CUDA"]


def test_pages_take_no_more_of_a_gpu_than_rollout_memory_lets():
    free, tight = (
        need(CODER, H200, f"rollout.memory={share}", "train.max_response_tokens=4096") for share in (0.9, 0.1)
    )
    assert tight.parts()["pages"] == int(0.1 * H200.memory) < free.parts()["pages"]
    rows, each = 512, 2 * 2 * 28 * 2 * 128
    assert free.parts()["pages"] == each * (rows * 4096 + 64 * 1024)  # a prompt is there once for its group


def test_the_peak_has_pages_or_an_update():
    assert peak({"weights": 5, "pages": 3, "gradients": 2, "pass": 2}) == 9
    assert peak({"weights": 5, "pages": 4, "gradients": 2, "pass": 1}) == 9


def test_a_padded_pass_is_refused_only_where_a_single_response_has_no_room():
    found = need(CODER, Device(60 * GIB, gpu=True), "train.update=padded", "train.micro_batch_size=64")
    assert found.lack() == ""
    assert ", should all responses reach the limit: " in found.fitted().words()


# --- auto


def test_where_there_is_room_nothing_is_recomputed_and_passes_are_large():
    found = need(CODER, Device(200 * GIB, gpu=True)).fitted()
    assert found.config.model.gradient_checkpointing is False
    assert found.config.train.pass_tokens == MOST_TOKENS
    assert found.words().endswith("recompute: no")
    assert not found.crowded
    assert f"{sum(found.parts().values()) / GIB:.2f} with pages that stay" in found.words()
    crowded = need(CODER, Device(40 * GIB, gpu=True)).fitted()
    assert crowded.crowded
    assert "pages that stay" not in crowded.words()


@pytest.mark.parametrize("gib", [32, 40, 48, 64, 80, 96, 139.8])
@pytest.mark.parametrize("limit", [1024, 7168])
def test_a_pass_is_as_large_as_fits_and_recomputes_only_where_a_fair_one_would_not(gib, limit):
    words = ["train.optimizer=adam8bit", f"train.max_response_tokens={limit}"]
    plan = need(CODER, Device(int(gib * GIB), gpu=True), *words)
    found = plan.fitted()
    room = found.device.usable - found.standing() - found.parts()["gradients"]
    tokens, recompute = found.config.train.pass_tokens, found.config.model.gradient_checkpointing
    assert plan.longest == 1024 + limit <= tokens <= MOST_TOKENS
    assert recompute is (plan.a_pass(max(ENOUGH_TOKENS, plan.longest), False) > room)
    assert peak(found.parts()) <= found.device.usable
    if tokens + 256 <= MOST_TOKENS:
        assert found.a_pass(tokens + 256, recompute) > room


def test_what_is_set_is_not_changed():
    found = need(CODER, H100, "model.gradient_checkpointing=true", "train.pass_tokens=3000").fitted()
    assert (found.config.model.gradient_checkpointing, found.config.train.pass_tokens) == (True, 3000)


def test_a_given_pass_is_recomputed_where_it_does_not_fit_otherwise():
    few, many = (need(CODER, H100, f"train.pass_tokens={n}").fitted().config.model for n in (4096, 32768))
    assert (few.gradient_checkpointing, many.gradient_checkpointing) == (False, True)


def test_a_padded_pass_counts_rows_of_the_longest():
    found = need(CODER, H100, "train.update=padded", "train.micro_batch_size=16").fitted()
    assert found.tokens == 16 * 2048
    assert found.config.model.gradient_checkpointing is True


def test_on_a_cpu_a_pass_has_16384_tokens_where_memory_allows_and_nothing_is_recomputed():
    large, small = (need(FOUR, Device(gib * GIB, gpu=False)).fitted().config for gib in (2000, 100))
    assert large.train.pass_tokens == MOST_TOKENS_CPU > small.train.pass_tokens >= 2048
    assert large.model.gradient_checkpointing is False is small.model.gradient_checkpointing


def test_pages_make_do_with_the_room_that_there_is():
    words = ["train.optimizer=adam8bit", "train.max_response_tokens=8192", "rollout.memory=0.8"]
    found = need(FOUR, H100, *words).fitted()
    assert 0.4 < found.config.rollout.memory < 0.8
    assert peak(found.parts()) <= H100.usable


# --- what does not fit


def test_what_does_not_fit_is_refused_with_settings_that_do():
    plan = need(FOUR, H100, "train.max_response_tokens=8192")
    lack = plan.lack()
    assert f"needs {peak(plan.fitted().least()) / GIB:.1f} GiB at the least" in lack
    ways = re.findall(r"((?:\S+=\S+ )+)\(([\d.]+) GiB\)", lack.partition("what fits: ")[2])
    assert {"model.lora_rank=32 ", "train.optimizer=adam8bit "} <= {words for words, _ in ways}
    for words, gib in ways:
        other = need(FOUR, H100, "train.max_response_tokens=8192", *words.split())
        assert other.lack() == ""
        assert peak(other.fitted().least()) / GIB == pytest.approx(float(gib), abs=0.06)


def test_a_smaller_limit_is_named_where_it_helps():
    plan = need(CODER, Device(48 * GIB, gpu=True), "train.max_response_tokens=65536")
    limit = re.search(r"train.max_response_tokens=(\d+)", plan.lack())[1]
    assert need(CODER, Device(48 * GIB, gpu=True), f"train.max_response_tokens={limit}").lack() == ""


def test_where_no_setting_helps_it_says_so():
    assert "none of these alone is enough" in need(shapes.QWEN3[-1], Device(24 * GIB, gpu=True)).lack()


def test_a_response_whose_keys_and_values_have_no_room_is_refused_with_a_share_that_has():
    words = "train.max_response_tokens=32768"
    lack = need(CODER, H200, words, "rollout.memory=0.001").lack()
    share = re.search(r"set rollout.memory=([\d.]+) ", lack)[1]
    assert need(CODER, H200, words, f"rollout.memory={share}").lack() == ""


def test_the_paper_s_setting_fits_into_141_gb_and_with_an_adapter_into_80():
    config = settled(load(find("paper")), gpu=True)
    plan = MemoryPlan(config, batches(config), FOUR, 2048, H200)
    assert plan.lack() == ""
    assert 90 < peak(plan.fitted().parts()) / GIB < H200.usable / GIB
    plan = MemoryPlan(config, batches(config), FOUR, 2048, H100)
    assert "model.lora_rank=32 (" in plan.lack().partition("what fits: ")[2]


def test_sizes_are_guessed_from_a_name():
    assert ModelShape.guess("Qwen/Qwen2.5-Coder-7B-Instruct").parameters == 7_000_000_000
    assert ModelShape.guess("Qwen/Qwen2.5-Coder-7B-Instruct").layers == 36
    assert ModelShape.guess("nano") is None


# --- vLLM


def test_vllm_gets_what_its_weights_its_work_and_all_responses_need_and_no_more_than_rollout_memory():
    words = ["rollout.engine=vllm", "train.max_response_tokens=1024"]
    wide = need(CODER, H200, *words).fitted()
    pages = wide.parts()["pages"]
    assert wide.config.rollout.memory == pytest.approx(pages / H200.memory, abs=1e-4)
    beside = pages - need(CODER, H200, "rollout.engine=graph", "train.max_response_tokens=1024").parts()["pages"]
    assert 2 * CODER.parameters < beside < 2 * CODER.parameters + 4 * GIB
    assert need(CODER, H200, *words, "rollout.memory=0.1").fitted().config.rollout.memory <= 0.1
    assert wide.context == 1024 + 1024  # the longest prompt and its response, not what the model could read
    assert need(CODER, H200, *words, "train.eval_max_response_tokens=4096").context == 1024 + 4096


def test_vllm_sleeps_where_it_and_an_update_cannot_be_there_at_once():
    words = ["rollout.engine=vllm", "train.max_response_tokens=1024"]
    assert not need(CODER, H200, *words).fitted().crowded
    assert need(CODER, Device(48 * GIB, gpu=True), *words, "rollout.memory=0.6").fitted().crowded


def test_a_share_that_is_too_small_for_vllms_weights_is_refused_with_one_that_is_not():
    said = need(CODER, H200, "rollout.engine=vllm", "rollout.memory=0.02").lack()
    assert "vLLM with its weights" in said and "rollout.memory=0.02" in said
    share = re.search(r"set rollout.memory=([\d.]+)", said)[1]
    assert need(CODER, H200, "rollout.engine=vllm", f"rollout.memory={share}").lack() == ""


def test_a_server_takes_no_memory_of_the_training():
    assert need(CODER, H200, "rollout.engine=vllm", "rollout.server=http://a:1").fitted().parts()["pages"] == 0
