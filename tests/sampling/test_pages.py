"""Keys and values in pages: taken as responses grow, shared by the samples of a prompt, given back in every case."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from tiny_models import random_prompts, tiny

from microcoder.sampling import GraphSampler, Sampling, call
from microcoder.sampling.pages import Pages, Text, pages_of
from microcoder.sampling.plain import PAGE, Rows

LIMIT = 3 * PAGE + 8  # which needs four pages
PROMPTS = random_prompts(1, 5, 70, 3, 17, 2)

pytestmark = pytest.mark.usefixtures("one_thread")


class Scarce(GraphSampler):
    """With a memory of so many pages, as a GPU would have it."""

    most = 0

    def _take_pages(self, wanted, needed):
        assert needed <= self.most
        return min(wanted, self.most)


@pytest.fixture(scope="module")
def llama():
    return tiny("llama", num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512)


def scarce(model, ends, pages, batch=512):
    sampler = Scarce(model, ends, batch)
    sampler.most = pages
    return sampler


def in_order(completions):
    return sorted(completions, key=lambda c: (c.prompt, c.sample))


# --- what comes out


@pytest.mark.parametrize("temperature", [0, 1.0])
@pytest.mark.parametrize("pages", [6, 10])  # the longest text alone; some of eight
def test_with_few_pages_responses_are_preempted_and_come_out_the_same(llama, temperature, pages):
    prompts, sampling, ends = PROMPTS[:4], Sampling(temperature, LIMIT, samples=2), [90]
    sampler = scarce(llama, ends, pages)
    found = in_order(sampler(prompts, sampling))
    roomy = GraphSampler(llama, ends)
    expected = in_order(roomy(prompts, sampling))
    assert sampler.usage.preemptions > 0 == roomy.usage.preemptions
    assert max(len(c.ids) for c in expected) == LIMIT
    assert [(c.prompt, c.sample, c.ids, c.truncated) for c in found] == [
        (c.prompt, c.sample, c.ids, c.truncated) for c in expected
    ]
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(torch.tensor(one.logprobs), torch.tensor(other.logprobs), atol=1e-4)


END = 7


class Scripted(Scarce):
    """Writes responses of given lengths instead of what a model says, and sees that each finds its own text in memory.

    The memory holds tokens in the place of keys. Every token is another one: that of a prompt or response at a place.
    """

    def start(self, prompts, lengths, pages):
        self.most, self.lengths, self.memory = pages, lengths, torch.full((pages * PAGE,), -1)
        draw = random.Random(0)  # as a call with seed 0 draws the seeds
        self.responses = {draw.getrandbits(62): (n, k) for n, some in enumerate(lengths) for k in range(len(some))}
        self.prompts = prompts
        return self(prompts, Sampling(1.0, max(map(max, lengths)), samples=len(lengths[0])))

    def written_by(self, n, k):
        return [1000 * (1 + n * 100 + k) + 10 + at for at in range(self.lengths[n][k] - 1)] + [END]

    def read(self, readings):
        for one in readings:
            self.memory[one.to] = torch.tensor(one.ids[one.begin :], dtype=torch.long)

    def step(self, count, sampling):
        rows = Rows(self.state[:, :count])
        if call.LONG == 0:
            texts = (rows.prefix_length + rows.length)[rows.done == 0].tolist()
            assert texts == sorted(texts, reverse=True)  # the longest first
        for row in (rows.done == 0).nonzero()[:, 0].tolist():
            n, k = self.responses[int(rows.seed[row])]
            slot, length, first = int(rows.slot[row]), int(rows.length[row]), len(self.prompts[n]) - 1
            text, table = self.prompts[n] + self.written_by(n, k), self.room.pools.table[slot].long()
            places = (table[:, None] * PAGE + torch.arange(PAGE)).flatten()
            places = torch.cat([places[:first], places[pages_of(first) * PAGE :][: length + 1]])
            assert (int(rows.token[row]), int(rows.position[row])) == (text[first + length], first + length)
            self.memory[places[-1]] = text[first + length]
            assert self.memory[places].tolist() == text[: first + length + 1]
            token = text[first + length + 1]
            self.written[slot, length], self.logprobs[slot, length] = token, -float(token)
            rows.token[row], rows.position[row], rows.length[row] = token, first + length + 1, length + 1
            rows.done[row] = int(token == END)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("batch", "long"), [(3, 2048), (16, 2048), (64, 2048), (3, 0), (16, 0)])
def test_whatever_the_lengths_every_response_keeps_its_pages_its_slot_and_its_text(
    llama, monkeypatch, batch, long, seed
):
    monkeypatch.setattr(call, "SMALLEST", 2)
    monkeypatch.setattr(call, "LONG", long)
    draw = random.Random(seed)
    prompts = [[-1000 * (n + 1) - at for at in range(draw.choice([1, 2, 65, 130]))] for n in range(6)]
    lengths = [[draw.choice([1, 5, 64, 65, 150, 260]) for _ in range(3)] for _ in prompts]
    sampler = Scripted(llama, [END], batch)
    found = in_order(sampler.start(prompts, lengths, pages=draw.choice([9, 14, 22])))
    assert [(c.prompt, c.sample) for c in found] == list(itertools.product(range(6), range(3)))
    assert [c.ids for c in found] == [sampler.written_by(c.prompt, c.sample) for c in found]
    assert all(c.logprobs == [-float(token) for token in c.ids] for c in found)
    assert sampler.pages.used == 0


def test_a_response_that_is_preempted_after_rows_have_moved_finds_a_slot_that_is_free(llama, monkeypatch):
    """Four of seven end early and the rows of the others move together; the last is preempted and comes back."""
    monkeypatch.setattr(call, "SMALLEST", 2)
    lengths = [[5], [700], [5], [400], [5], [5], [600]]
    sampler = Scripted(llama, [END])
    found = in_order(sampler.start([[-1 - n] for n in range(7)], lengths, pages=20))
    assert sampler.usage.preemptions > 0
    assert [c.ids for c in found] == [sampler.written_by(c.prompt, c.sample) for c in found]


# --- how many at once


def test_more_short_responses_are_written_at_once_than_long_ones_would_fit(llama):
    """Room for two responses at their limit; forty of at most eight tokens run beside each other."""
    prompts, limit = random_prompts(3), 20 * PAGE
    ends = range(0, 97, 2)
    sampler = scarce(llama, ends, 1 + 2 * 20)
    found = list(sampler(prompts, Sampling(1.0, limit, samples=60)))
    assert max(len(c.ids) for c in found) < PAGE  # about one token in two ends a response
    assert sampler.usage.most_responses >= 20
    assert sampler.usage.preemptions == 0


def test_a_smaller_graph_goes_on_while_there_are_no_pages_for_those_that_wait(llama, monkeypatch):
    monkeypatch.setattr(call, "SMALLEST", 2)
    sampler = Scripted(llama, [END])
    found = list(sampler.start([[-1 - n] for n in range(32)], [[130]] * 32, pages=12))  # three pages each
    assert len(found) == 32
    assert sampler.usage.slot_steps <= 8 * sampler.usage.steps  # not 32
    assert sampler.usage.most_responses <= 6  # one page each, and one to grow


def test_a_pool_is_no_larger_than_what_all_responses_could_need(llama):
    sampler = GraphSampler(llama, [7], batch=4)
    list(sampler(PROMPTS, Sampling(1.0, PAGE + 1, samples=2)))
    assert sampler.usage.pages == 4 * 2 + (0 + 1 + 2 + 1 + 1 + 1)
    assert sampler.room.pools.keys[0].shape[0] == sampler.usage.pages


def test_a_prompt_is_stored_once_for_all_of_its_samples(llama):
    prompts = random_prompts(3 * PAGE + 1)
    sampler = GraphSampler(llama, [], batch=64)
    list(sampler(prompts, Sampling(1.0, 2, samples=50)))
    assert sampler.usage.most_pages == 3 + 50
    assert sampler.usage.prompts_read == 1


# --- nothing is lost


def test_after_a_call_all_pages_are_free_also_when_it_was_given_up(llama):
    sampler = scarce(llama, [], 12)
    for _ in sampler(PROMPTS, Sampling(1.0, LIMIT)):
        assert len(set(sampler.pages.free)) == len(sampler.pages.free)
    assert (sampler.usage.preemptions > 0, sampler.pages.used) == (True, 0)
    given_up = sampler(PROMPTS, Sampling(1.0, LIMIT))
    for _ in range(2):
        next(given_up)
    assert sampler.pages.used > 0
    given_up.close()
    assert sampler.pages.used == 0
    assert sorted(sampler.pages.free) == list(range(12))
    assert len(list(sampler(PROMPTS, Sampling(0, 4)))) == len(PROMPTS)


# --- the books alone


def owned(pages):
    """Every page that someone has."""
    return [*itertools.chain(*pages.stored.values()), *itertools.chain(*(one.own for one in pages.live))]


def test_whatever_comes_each_page_has_one_owner_and_the_oldest_goes_on():
    draw = random.Random(0)
    prompts, limit, chunk = [[0] * draw.randrange(1, 300) for _ in range(8)], 5 * PAGE - 1, 4
    pages = Pages(pages_of(299) + pages_of(limit), prompts, limit, chunk)
    preempted = 0
    for turn in range(3000):
        oldest = next(iter(pages.live), None)
        preempted += len(pages.grow())
        assert oldest is None or oldest in pages.live
        for one in pages.live:
            assert len(one.own) * PAGE >= min(pages.steps - one.begun + chunk, limit)
        one = Text(draw.randrange(len(prompts)), turn, ids=[0] * draw.choice([0, 0, 100, limit - 1]))
        assert pages.admit(one, turn) or pages.live
        pages.steps += chunk
        for other in list(pages.live):
            if pages.steps - other.begun >= limit or draw.random() < 0.01:
                pages.leave(other)
        assert sorted(owned(pages) + pages.free) == list(range(pages.count))
        assert pages.owned == sum(len(other.own) for other in pages.live)
    assert preempted > 10
    pages.close()
    assert pages.used == 0


def test_places_of_a_text_go_from_page_to_page_and_a_response_begins_its_own():
    pages = Pages(9, [[0] * (PAGE + 4)], 2 * PAGE, 1)  # the prompt fills one page and three places of another
    pages.free = [0, 5, 1, 7, 3]
    one = Text(0, 0, ids=[0] * PAGE)
    assert pages.admit(one, 2)
    assert (pages.stored[0], one.own) == ([3, 7], [1, 5])
    assert pages.changes == {(2, 0): 3, (2, 1): 7, (2, 2): 1, (2, 3): 5}
    found = pages.places(0, one.own, PAGE - 1, 2 * PAGE + 5).tolist()
    assert found[:6] == [3 * PAGE + PAGE - 1, 7 * PAGE, 7 * PAGE + 1, 7 * PAGE + 2, 1 * PAGE, 1 * PAGE + 1]
    assert found[-3:] == [1 * PAGE + PAGE - 1, 5 * PAGE, 5 * PAGE + 1]


def test_prompts_are_read_ahead_only_where_responses_leave_room():
    pages = Pages(12, [[0] * (PAGE + 1)] * 8, 20 * PAGE, 4)
    assert pages.admit(Text(0, 0), 0)  # takes two of twelve, and may soon take four more
    assert [pages.store(n) for n in range(1, 8)] == [True] * 6 + [False]
    assert pages.admit(Text(7, 0), 1)  # two pages, which leaves one for each of the two
    assert not pages.admit(Text(7, 1), 2)
