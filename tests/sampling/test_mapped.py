"""Memory that is given back and taken again, against a driver that keeps books instead of memory."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest
import torch
from tiny_models import random_prompts, tiny

from microcoder.sampling import GraphSampler, NotCapturable, Sampling, mapped
from microcoder.sampling.mapped import Access, Addresses, MappedMemory, MappingError, Properties

UNIT = 2**21
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


class Driver:
    """Accepts what cuda.h allows, and knows what is reserved, mapped and allocated."""

    def __init__(self, fail=""):
        self.fail, self.calls = fail, []
        self.reserved, self.handles, self.mappings, self.accessible = {}, {}, {}, set()

    def __getattr__(self, name):
        def function(*arguments):
            types = mapped.FUNCTIONS[name]
            assert len(arguments) == len(types)
            self.calls.append(name)
            return 2 if name == self.fail else getattr(self, f"do_{name}")(*arguments) or 0

        return function

    def do_cuMemGetAllocationGranularity(self, to, properties, option):
        assert (properties._obj.type, properties._obj.location.type, properties._obj.location.id, option) == (
            1,
            1,
            3,
            0,
        )
        to._obj.value = UNIT

    def do_cuMemAddressReserve(self, to, size, alignment, address, flags):
        assert size % UNIT == 0 == alignment == address == flags
        to._obj.value = 2**44
        self.reserved[2**44] = size

    def do_cuMemAddressFree(self, address, size):
        assert self.reserved.pop(address) == size
        assert not self.mappings

    def do_cuMemCreate(self, to, size, properties, flags):
        assert size % UNIT == 0 < size
        assert flags == 0 == properties._obj.handle
        to._obj.value = 2**63 + len(self.calls)
        self.handles[to._obj.value] = size

    def do_cuMemMap(self, address, size, offset, handle, flags):
        assert self.handles[handle.value] == size
        assert offset == flags == 0
        assert all(address >= to + count or address + size <= to for to, count in self.mappings.items())
        assert address + size <= 2**44 + self.reserved[2**44]
        self.mappings[address] = size

    def do_cuMemSetAccess(self, address, size, access, count):
        assert self.mappings[address] == size
        assert (access._obj.location.id, access._obj.flags, count) == (3, 3, 1)
        self.accessible.add(address)

    def do_cuMemUnmap(self, address, size):
        assert self.mappings.pop(address) == size

    def do_cuMemRelease(self, handle):
        del self.handles[handle.value]


@pytest.fixture
def closing(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)


def test_the_structures_lie_in_memory_as_the_driver_reads_them():
    assert (ctypes.sizeof(Properties), ctypes.sizeof(Access)) == (32, 12)
    assert [Properties.location.offset, Properties.data.offset, Properties.flags.offset] == [8, 16, 24]


def test_memory_is_put_behind_the_first_addresses_and_taken_away_again(closing):
    driver = Driver()
    addresses = Addresses(driver, 3, 10 * UNIT - 5)
    assert addresses.__cuda_array_interface__["data"] == (2**44, False)
    assert addresses.__cuda_array_interface__["shape"] == (10 * UNIT,)
    for count, units in ((1, 1), (UNIT, 1), (3 * UNIT + 1, 4), (2 * UNIT, 4), (99 * UNIT, 10)):
        addresses.map(count)
        assert addresses.mapped == sum(driver.mappings.values()) == units * UNIT
        assert driver.accessible == set(driver.mappings)
        assert not driver.handles  # so that memory goes back when it is unmapped
    addresses.unmap()
    assert (addresses.mapped, driver.mappings) == (0, {})
    addresses.map(2 * UNIT)
    assert driver.mappings == {2**44: 2 * UNIT}
    del addresses
    assert (driver.mappings, driver.reserved) == ({}, {})


@pytest.mark.parametrize("name", [name for name in mapped.FUNCTIONS if name not in ("cuMemUnmap", "cuMemAddressFree")])
def test_a_call_that_fails_is_named_and_nothing_stays_behind(closing, name):
    driver = Driver(fail=name)
    with pytest.raises(MappingError, match=rf"{name} failed with CUresult 2 \(out of memory\)"):
        Addresses(driver, 3, UNIT).map(1)
    assert (driver.mappings, driver.reserved) == ({}, {})


def test_without_the_driver_there_is_no_such_memory(monkeypatch):
    monkeypatch.setattr(mapped, "driver", lambda: ctypes.CDLL("no-such-library.so"))
    assert mapped.reserve(torch.device("cuda"), UNIT) is None


# --- how much a call takes


class Books:
    """Memory that can be given back, without the memory."""

    mapped = 0

    def map(self, count):
        self.mapped = max(self.mapped, count)

    def unmap(self):
        self.mapped = 0


@pytest.fixture
def sampler(monkeypatch):
    """On a GPU of 100 pages, as far as the numbers go; half of them may be keys and values, and 70 are free."""
    found = GraphSampler(tiny("llama"), [7], memory=0.5)
    size, found.cuda, found.mapped = found.page_bytes, True, Books()
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=100 * size))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr("microcoder.sampling.graph.LEFT_FREE", 2 * size)
    found.free = 70
    free = lambda _: ((found.free * size - found.mapped.mapped), 100 * size)  # noqa: E731
    monkeypatch.setattr(torch.cuda, "mem_get_info", free)
    return found


def test_a_call_takes_what_it_wants_within_its_share_and_what_is_free(sampler):
    assert [sampler._take_pages(wanted, 5) for wanted in (20, 10, 60)] == [20, 10, 50]
    assert sampler.mapped.mapped == 50 * sampler.page_bytes
    sampler.release()
    assert (sampler.mapped.mapped, sampler.releasable) == (0, True)
    sampler.free = 30  # an update has taken the others
    assert [sampler._take_pages(wanted, 5) for wanted in (20, 60)] == [20, 28]
    sampler.free = 28  # less than it has
    assert sampler._take_pages(60, 5) == 28


def test_one_response_that_does_not_fit_is_refused_with_a_number_that_would_do(sampler):
    with pytest.raises(NotCapturable, match=r"of 4096 tokens .*rollout\.memory=0\.5 .*; set it to 0\.6[45] or more"):
        sampler._take_pages(100, 64)
    sampler.free = 12
    with pytest.raises(NotCapturable, match=r"of 1280 tokens .*; free some, or lower the limit"):
        sampler._take_pages(100, 20)


# --- on a GPU


@needs_gpu
def test_on_a_gpu_memory_goes_back_and_comes_again_at_the_same_address():
    memory = MappedMemory(torch.device("cuda"), 2**30)
    half = memory.tensor[: 2**29].view(torch.bfloat16)
    for value in (3.0, 5.0):
        memory.map(2**29)
        assert bool((half.fill_(value) == value).all())
        torch.cuda.empty_cache()
        taken = torch.cuda.mem_get_info()[0]
        memory.unmap()
        assert torch.cuda.mem_get_info()[0] - taken >= 2**29
    assert half.data_ptr() == memory.addresses.address


@needs_gpu
def test_on_a_gpu_graphs_go_on_after_a_release_and_with_few_pages_responses_come_out_the_same(monkeypatch):
    sampler = GraphSampler(tiny("llama").to("cuda"), [], dtype=torch.float32)
    prompts, sampling = random_prompts(1, 5, 70, 3, 17, 2), Sampling(1.0, 200, samples=4)

    def written():
        return {(c.prompt, c.sample): c.ids for c in sampler(prompts, sampling)}

    expected, room = written(), sampler.room
    sampler.release()
    assert sampler.releasable
    assert sampler.mapped.mapped == 0
    assert written() == expected
    assert sampler.room is room
    take = sampler._take_pages
    monkeypatch.setattr(sampler, "_take_pages", lambda wanted, needed: take(min(wanted, 12), needed))
    assert written() == expected
    assert sampler.usage.preemptions > 0
