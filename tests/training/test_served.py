"""Sampling from a server, which is a small one of our own that speaks vLLM's protocol."""

from __future__ import annotations

import pytest
import torch
from served_model import Served, serving

from microcoder.models import resolve
from microcoder.models.weights import load
from microcoder.sampling import Sampling, VllmError
from microcoder.sampling.shadow import weights
from microcoder.training import served as module
from microcoder.training.served import ServedSampler, ServerGone

PROMPTS = [[5, 6, 7], [8, 9]]
SAMPLING = Sampling(1.0, 6, samples=3, seed=4)
NAMES = ["nano", resolve("nano").path]


def sampler(url, tmp_path, **more):
    found = ServedSampler(url, NAMES, 64, 8, tmp_path / "weights", **more)
    found.end_tokens = [2]
    return found


def test_responses_come_as_they_finish_and_do_not_depend_on_that_order(tmp_path):
    served = Served()
    with serving(served) as url:
        ask = sampler(url, tmp_path)
        plain = list(ask(PROMPTS, SAMPLING))
        slow = served.asked[0]["seed"]
        served.delay = lambda words: 0.5 * (words["seed"] == slow)
        delayed = list(ask(PROMPTS, SAMPLING))
    key = lambda one: (one.prompt, one.sample)  # noqa: E731
    assert sorted(plain, key=key) == sorted(delayed, key=key)
    assert [key(one) for one in sorted(plain, key=key)] == [(n, k) for n in range(2) for k in range(3)]
    assert len({tuple(one.ids) for one in plain if one.prompt == 0}) > 1  # each has noise of its own
    assert all(len(one.ids) == len(one.logprobs) and one.truncated == (one.ids[-1] != 2) for one in plain)
    asked = served.asked[0]
    assert asked["repetition_penalty"] == 1.0 and asked["min_p"] == 0.0  # else the model's own defaults would hold


def test_the_likeliest_response_is_asked_for_once(tmp_path):
    served = Served()
    with serving(served) as url:
        found = list(sampler(url, tmp_path)([[5, 6]], Sampling(0.0, 4, samples=2)))
    assert [one.sample for one in found] == [0, 1] and found[0].ids == found[1].ids and len(served.asked) == 1


def test_the_server_gets_the_weights_of_the_model_and_only_the_first_rank_brings_them(tmp_path):
    served, model = Served(), load(resolve("nano"), torch.float32)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.25)
    with serving(served) as url:
        first = sampler(url, tmp_path)
        sampler(url, tmp_path, rank=1).refresh(model)
        assert not served.loaded
        first.refresh(model)
        assert len(served.loaded) == 1
        there = dict(served.model.named_parameters())
        for name, weight in weights(model):
            assert torch.equal(there[name], weight.bfloat16().float()), name
        first.close()
    assert not list((tmp_path / "weights").iterdir())


class Receiver:
    """In place of TRL's client, which needs two GPUs."""

    def __init__(self):
        self.got = []

    def update_named_params(self, metadata, parts):
        self.got.append((metadata, [(name, "bfloat16", list(weight.shape)) for name, weight in parts]))

    def reset_prefix_cache(self):
        pass


def test_ranks_gather_weights_equally_often_where_they_go_from_gpu_to_gpu(tmp_path, monkeypatch):
    gathered, model = [], load(resolve("nano"), torch.float32)
    monkeypatch.setattr(module, "weights", lambda *given: gathered.append(0) or weights(*given))
    with serving(Served()) as url:
        ranks = [sampler(url, tmp_path, rank=rank) for rank in (0, 1)]
        counts = []
        for one in ranks:
            one.backend, one.client = "nccl", Receiver()
            for _ in range(2):
                gathered.clear()
                one.refresh(model)
                counts.append(len(gathered))
    assert counts[:2] == counts[2:]
    (first, then), others = ranks[0].client.got, ranks[1].client.got
    assert first[0] == first[1] == then[0] == then[1] and not others


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"card": {"id": "other", "root": "/models/other"}}, r"serves other, and model.name=nano.*serve nano"),
        ({"card": {"max_model_len": 32}}, r"room for 32 tokens, and a prompt and its response may have 64.*-len 64"),
        ({"model_config": {"logprobs_mode": "raw_logprobs"}}, r"before the temperature \(logprobs_mode raw_logprobs\)"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_serve_the_training_is_refused_with_how_to_start_one(tmp_path, changes, words):
    with serving(Served(**changes)) as url, pytest.raises(VllmError, match=words):
        sampler(url, tmp_path)


def test_a_server_without_its_development_endpoints_is_refused(tmp_path):
    served = Served()
    served.config = None
    with serving(served) as url, pytest.raises(VllmError, match=r"cannot be given new weights.*VLLM_SERVER_DEV_MODE=1"):
        sampler(url, tmp_path)


def test_a_server_on_a_cpu_gets_no_weights_that_it_would_keep_old_ones_beside(tmp_path):
    served, model = Served(), load(resolve("nano"), torch.float32)
    served.config["device_config"] = {"device": "cpu"}
    with serving(served) as url:
        ask = sampler(url, tmp_path)
        with pytest.raises(VllmError, match=r"tied to its embeddings.*leave rollout.server out"):
            ask.refresh(model)
        assert not served.loaded
        model.config.tie_word_embeddings = False
        ask.refresh(model)
        assert served.loaded


def test_a_server_that_is_not_there_is_named_and_one_that_goes_away_ends_the_sampling(tmp_path):
    with serving(Served()) as url:
        ask = sampler(url, tmp_path)
    with pytest.raises(
        VllmError, match=rf"no vLLM server answers at rollout.server={url}.*VLLM_SERVER_DEV_MODE=1 vllm"
    ):
        sampler(url, tmp_path)
    with pytest.raises(ServerGone, match=url):
        list(ask(PROMPTS, SAMPLING))
