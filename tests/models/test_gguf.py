"""A GGUF file is a model: its blocks, its tensors, its tokenizer, and what is said of a file that cannot be used."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import gguf as reference
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf_files import CODE, MERGES, SHAPE, TEMPLATE, TOKENS, random_blocks, stored, write_gguf
from hypothesis import given, settings
from hypothesis import strategies as st
from model_folders import adapter, run
from tiny_models import tiny
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, Qwen2Tokenizer

from microcoder.models import ModelError, is_cached, resolve
from microcoder.models.blocks import dequantise
from microcoder.models.gguf import FORMATS


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def logits(model):
    ids = torch.arange(40)[None] * 5 % model.config.vocab_size  # (1, tokens)
    with torch.no_grad():
        return model(ids).logits


def loaded(path):
    return AutoModelForCausalLM.from_pretrained(resolve(str(path)).path, dtype=torch.float32).eval()


def tokenizer_of(path):
    return AutoTokenizer.from_pretrained(resolve(str(path)).path)


# --- blocks


@pytest.mark.parametrize("number", FORMATS)
def test_each_format_is_read_as_the_gguf_package_reads_it(number):
    form = FORMATS[number]
    assert (form.values, form.size) == reference.GGML_QUANT_SIZES[Kind(number)]
    rows = random_blocks(form.name, rows=7, blocks=6)
    theirs = reference.quants.dequantize(rows, Kind(number))
    ours = dequantise(torch.from_numpy(rows), form)
    assert ours.dtype == torch.float32
    assert ours.numpy().tobytes() == theirs.astype(np.float32).tobytes()


@pytest.mark.parametrize("form", ["F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0"])
def test_a_format_changes_weights_by_less_than_its_error_and_not_by_much_less(form):
    values = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)
    data = reference.quants.quantize(values, Kind[form])
    back = reference.quants.dequantize(data, Kind[form]).reshape(values.shape)
    error = np.linalg.norm(back - values) / np.linalg.norm(values)
    known = next(found.error for found in FORMATS.values() if found.name == form)
    assert known / 10 < error < known


# --- models


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("form", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_a_converted_model_computes_what_the_original_does(tmp_path, family, form, tied):
    pre = "smollm" if family == "llama" else "qwen2"
    model = write_gguf(tmp_path / "m.gguf", family, pre=pre, formats={"weight": form}, tie_word_embeddings=tied)
    ours = loaded(tmp_path / "m.gguf")
    assert ours.config.tie_word_embeddings is tied
    assert torch.equal(logits(ours), logits(model))
    assert (ours.config.rms_norm_eps, ours.generation_config.pad_token_id) == (1e-5, 2)


def test_rows_are_put_into_order_whatever_the_format(tmp_path):
    formats = {"attn_q.weight": "Q4_0", "attn_k.weight": "Q5_1", "ffn_up.weight": "Q8_0", "token_embd.weight": "Q5_0"}
    model = write_gguf(tmp_path / "m.gguf", "llama", pre="gpt-2", formats=formats, hidden_size=128)
    assert torch.equal(logits(loaded(tmp_path / "m.gguf")), logits(model))


def test_a_large_tensor_is_converted_in_chunks(tmp_path, monkeypatch):
    from microcoder.models import convert

    model = write_gguf(tmp_path / "m.gguf", "llama", pre="gpt-2", formats={"weight": "F16"})
    monkeypatch.setitem(convert.CHUNK, "cpu", 5 * 64)
    assert torch.equal(logits(loaded(tmp_path / "m.gguf")), logits(model))


def test_the_scaling_of_llama_3_is_found_in_its_frequencies(tmp_path):
    scaling = {
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192, "rope_theta": 500000.0,
    }  # fmt: skip
    plain = 500000.0 ** -(torch.arange(0, 32, 2) / 32)
    scaled = write_gguf(tmp_path / "x.gguf", "llama", pre="llama-bpe", rope_parameters=scaling)
    factors = (plain / scaled.model.rotary_emb.inv_freq).numpy().astype(np.float32)
    assert factors.max() > 31 and factors.min() < 1.01
    extra = {"rope_freqs.weight": (factors, None)}
    model = write_gguf(tmp_path / "m.gguf", "llama", pre="llama-bpe", rope_parameters=scaling, extra=extra)
    assert torch.equal(logits(loaded(tmp_path / "m.gguf")), logits(model))
    write_gguf(tmp_path / "n.gguf", "llama", pre="llama-bpe", extra={"rope_freqs.weight": (factors * 2, None)})
    with pytest.raises(ModelError, match="are not those of Llama 3"):
        resolve(str(tmp_path / "n.gguf"))


def test_parts_of_a_model_are_found_beside_the_first(tmp_path):
    model = write_gguf(tmp_path / "m.gguf", options={"split_max_tensors": 10})
    first, second, *_ = sorted(tmp_path.glob("*.gguf"))
    assert first.name.startswith("m-00001-of-0000")
    assert torch.equal(logits(loaded(first)), logits(model))
    with pytest.raises(ModelError, match=r"is part 2 of \d; name the first: .*m-00001-of-"):
        resolve(str(second))
    second.unlink()
    with pytest.raises(ModelError, match=r"bring the others into .*: m-00002-of-"):
        resolve(str(first))
    with pytest.raises(ModelError, match=r"is one of \d parts; give them their names again"):
        resolve(str(first.rename(tmp_path / "renamed.gguf")))


# --- tied or not


def twice(tmp_path, inner, outer, noise=0.0):
    """(a model whose file has its embeddings twice, in two formats and with noise; what was said)"""
    values = tiny("qwen2", **SHAPE).lm_head.weight.detach().numpy()
    other = values + noise * np.random.default_rng(0).normal(size=values.shape).astype(np.float32) * values.std()
    extra = {"output.weight": (reference.quants.quantize(other, Kind[outer]), Kind[outer])}
    write_gguf(tmp_path / "m.gguf", formats={"token_embd.weight": inner}, extra=extra)
    said: list[str] = []
    resolve(str(tmp_path / "m.gguf"), progress=said.append)
    return loaded(tmp_path / "m.gguf"), " ".join(said)


@pytest.mark.parametrize(("inner", "outer"), [("Q4_0", "Q8_0"), ("Q8_0", "Q4_0"), ("F16", "F32"), ("Q5_0", "Q5_0")])
def test_embeddings_that_were_stored_twice_are_tied_again_from_the_finer_tensor(tmp_path, inner, outer):
    model, said = twice(tmp_path, inner, outer)
    assert model.config.tie_word_embeddings
    finer = min(inner, outer, key=["F32", "F16", "Q8_0", "Q5_0", "Q4_0"].index)
    assert f"the embeddings are tied, from {finer}" in said
    _, values = stored(tiny("qwen2", **SHAPE).lm_head.weight.detach().numpy(), finer)
    assert torch.equal(model.model.embed_tokens.weight, torch.tensor(values).bfloat16().float())


@pytest.mark.parametrize(
    ("inner", "outer", "noise"), [("F32", "F16", 0.01), ("Q8_0", "Q8_0", 0.1), ("Q4_0", "Q8_0", 0.5)]
)
def test_embeddings_that_differ_by_more_than_rounding_stay_two(tmp_path, inner, outer, noise):
    model, said = twice(tmp_path, inner, outer, noise)
    assert not model.config.tie_word_embeddings
    assert "tied" not in said
    assert not torch.equal(model.lm_head.weight, model.model.embed_tokens.weight)


# --- tokenizer


def test_the_tokenizer_template_and_ends_are_those_of_the_file(tmp_path):
    write_gguf(tmp_path / "m.gguf")
    tokenizer = tokenizer_of(tmp_path / "m.gguf")
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == (*TOKENS[1:3], "<|im_end|>")
    assert tokenizer.model_max_length == 256
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert chat == "<|im_start|>user\nhi<|im_end|>\n"
    assert tokenizer(chat).input_ids[0] == 1  # one token, not its letters
    assert tokenizer("a<tool>").input_ids[-1] == 3
    assert tokenizer.decode([3, 2], skip_special_tokens=True) == "<tool>"
    assert tokenizer.decode(tokenizer(CODE).input_ids) == CODE
    assert len(tokenizer) == len(TOKENS)  # without those that only fill up the embeddings
    folder = Path(resolve(str(tmp_path / "m.gguf")).path)
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == [2, 0]
    assert (folder / "chat_template.jinja").read_text() == TEMPLATE


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("qwen2", ["whole", "'s", "ĠĠ", "Ġ", "1", "2", "2", "(", "ĊĊ"]),
        ("llama-bpe", ["whole", "'s", "ĠĠ", "Ġ", "122", "(", "ĊĊ"]),
        ("smollm", ["whole", "'s", "ĠĠĠ", "1", "2", "2", "(", "ĊĊ"]),
        ("gpt-2", ["whole", "'s", "ĠĠ", "Ġ", "122", "(", "ĊĊ"]),
    ],
)
def test_a_text_is_cut_as_the_pre_tokenizer_of_the_file_says(tmp_path, pre, pieces):
    write_gguf(tmp_path / "m.gguf", "qwen3" if pre == "qwen2" else "llama", pre=pre)
    tokenizer = tokenizer_of(tmp_path / "m.gguf")
    found = tokenizer.convert_ids_to_tokens(tokenizer("whole's   122(\n\n", add_special_tokens=False).input_ids)
    if (
        pre != "llama-bpe"
    ):  # which takes a piece of the vocabulary as it is; the others merge, and nothing makes "whole"
        pieces = [*"whole", *pieces[1:]]
    assert found == pieces


CHARACTERS = st.sampled_from(list("aZé\u0301ñ漢か한٣½12'sLl \t\n\r.,_(🙂\u00a0\u200d"))


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    """(our tokenizer of a file, the class of Qwen's in transformers with the same vocabulary)"""
    path = tmp_path_factory.mktemp("qwen") / "m.gguf"
    write_gguf(path, "qwen3")
    vocabulary = {token: n for n, token in enumerate(TOKENS)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROCODER_CACHE", str(path.parent / "cache"))
        ours = tokenizer_of(path)
    assert not isinstance(ours, Qwen2Tokenizer)
    return ours, Qwen2Tokenizer(vocabulary, [tuple(merge.split(" ")) for merge in MERGES])


@settings(max_examples=300, deadline=None)
@given(text=st.lists(CHARACTERS | st.sampled_from(["'s", "'LL", "122", "re", "  ", "\r\n"]), max_size=30).map("".join))
def test_any_text_is_cut_as_by_qwens_own_class(qwen, text):
    ours, theirs = qwen
    assert ours(text).input_ids == theirs(text).input_ids


@pytest.mark.parametrize(
    ("pre", "key", "before"),
    [("llama3", None, [1]), ("llama3", False, []), ("smollm", True, [1]), ("smollm", None, [])],
)
def test_texts_begin_with_the_bos_token_where_the_file_or_its_kind_says_so(tmp_path, pre, key, before):
    write_gguf(tmp_path / "m.gguf", "llama", pre=pre, metadata={"tokenizer.ggml.add_bos_token": key})
    assert tokenizer_of(tmp_path / "m.gguf")("Q").input_ids == [*before, TOKENS.index("Q")]


# --- the cache


def test_a_file_is_converted_once_and_again_after_it_was_replaced(tmp_path, monkeypatch):
    write_gguf(tmp_path / "m.gguf")
    monkeypatch.chdir(tmp_path)
    assert is_cached("m.gguf")
    assert not (tmp_path / "cache").exists()  # asking converts nothing
    said: list[str] = []
    first = resolve("m.gguf", progress=said.append)
    assert said[0] == "converting m.gguf to bfloat16 safetensors, once"
    assert first.note == "converted from m.gguf"
    said.clear()
    assert resolve(str(tmp_path / "m.gguf"), progress=said.append).path == first.path
    assert not said
    os.utime("m.gguf", ns=(1, 1))
    assert resolve("m.gguf").path != first.path


def test_a_gguf_file_can_be_the_base_of_an_adapter(tmp_path):
    write_gguf(tmp_path / "m.gguf")
    folder = adapter(tmp_path / "a", str(tmp_path / "m.gguf"))
    assert is_cached(str(folder))
    source = resolve(str(folder))
    assert (source.path, source.adapter) == (resolve(str(tmp_path / "m.gguf")).path, str(folder))


def test_a_full_disk_leaves_nothing_half_written(tmp_path, cache):
    write_gguf(tmp_path / "m.gguf")
    program = (
        "import resource\nfrom microcoder.models import ModelError, resolve\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        f"try:\n    resolve({str(tmp_path / 'm.gguf')!r})\nexcept ModelError as error:\n    print(error)"
    )
    assert "File too large; choose another place for the cache with: export MICROCODER_CACHE=" in run(program)
    assert [path.suffix for path in (cache / "gguf").iterdir()] == [".lock"]


# --- files that cannot be used


def other(change):
    def make(path):
        write_gguf(path)
        path.write_bytes(change(path.read_bytes()))

    return make


def written(**options):
    return lambda path: write_gguf(path, **options)


BLOCK = np.zeros((1, 84), np.uint8)


@pytest.mark.parametrize(
    ("make", "words", "readable"),
    [
        (lambda path: path.touch(), "is no GGUF file: it begins with b''; name a .gguf file", False),
        (lambda path: path.write_bytes(b"PK\3\4" * 9), "is no GGUF file: it begins with b'PK", False),
        (other(lambda data: data[:4] + struct.pack("<I", 1) + data[8:]), "is of version 1; only little-endian", False),
        (written(options={"endianess": reference.GGUFEndian.BIG}), "is big-endian; only little-endian", False),
        (other(lambda data: data[:5000]), "is cut off or damaged; download it again", False),
        (other(lambda data: data[:-1000]), "bytes of the tensor blk.1.", False),
        (written(extra={"x": (BLOCK, Kind.Q2_K)}), "tensor x of {} is stored as Q2_K; supported are F32, F16", False),
        (written(architecture="gemma"), "of the architecture gemma; supported are llama, qwen2, qwen3", True),
        (written(pre="tekken"), "the pre-tokenizer 'tekken'; supported are qwen2, llama-bpe", True),
        (written(pre="smollm"), "is a Qwen with the pre-tokenizer 'smollm'", True),
        (written(metadata={"tokenizer.ggml.model": "llama"}), "a tokenizer of the kind 'llama'; only byte-level", True),
        (written(metadata={"tokenizer.ggml.merges": None}), "lack tokenizer.ggml.merges", True),
        (written(metadata={"qwen2.rope.scaling.type": "yarn"}), "scales its positions by 'yarn'", True),
        (written(without="blk.1.attn_q.bias"), "lacks the tensor blk.1.attn_q.bias of a qwen2 model of 2 layers", True),
        (written(extra={"blk.0.exps.weight": (np.zeros(4, "f4"), None)}), "has the tensor blk.0.exps.weight", True),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_says_why_and_what_to_do(tmp_path, cache, make, words, readable):
    path = tmp_path / "m.gguf"
    make(path)
    assert is_cached(str(path)) is readable
    with pytest.raises(ModelError) as error:
        resolve(str(path))
    assert words.format(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert [found.suffix for found in (cache / "gguf").iterdir()] == [".lock"]


def test_a_folder_of_gguf_files_says_which_to_name(tmp_path):
    (tmp_path / "b.gguf").touch()
    with pytest.raises(ModelError, match=r"holds GGUF files; name one of them, such as .*/b\.gguf"):
        resolve(str(tmp_path))


def test_a_config_of_another_width_keeps_it(tmp_path):
    write_gguf(tmp_path / "m.gguf", "qwen3", head_dim=48)
    config = AutoConfig.from_pretrained(resolve(str(tmp_path / "m.gguf")).path)
    assert (config.head_dim, config.vocab_size) == (48, len(TOKENS) + 5)
