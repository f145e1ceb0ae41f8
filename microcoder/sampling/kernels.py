"""The decode step's kernels, in Triton: what would be many small launches and passes over memory is one of each.

`attend` and `pick` have plain counterparts in `plain.py`, which say the same in a few lines of torch. Where a score
must not count it is -1e30, not -inf, whose differences are no numbers.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import triton
import triton.language as tl

from .plain import LONG, PAGE, Pools, Rows
from .shadow import head_width

SPLITS = (1, 4, 16)
TUNING = {1: (32, 1, 2), 4: (64, 2, 2), 16: (32, 1, 2)}  # splits -> tokens of a block, warps, stages
LONG_TUNING = 64, 2, 2  # of texts that are not split and may be LONG; with a stage more where there is
STAGE_BYTES = 160 << 10  # so much shared memory
BUSY = 256  # programs of attention, which keep a GPU busy


def rms_norm(
    x: torch.Tensor, weight: torch.Tensor, eps: float, dtype: torch.dtype, more: torch.Tensor | None = None
) -> torch.Tensor:
    """x / rms(x) * weight over the last dimension, rounded once, to `dtype`. `more` is first added to x, in place."""
    width = x.shape[-1]
    rows = x.reshape(-1, width)
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    if more is not None and (rows.data_ptr() != x.data_ptr() or more.shape != x.shape or not more.is_contiguous()):
        raise ValueError("x and what is added to it in place must be contiguous, and of one shape")
    out = torch.empty(rows.shape, dtype=dtype, device=x.device)
    block = triton.next_power_of_2(width)
    warps = 1 if block <= 256 else 4 if block <= 2048 else 8
    _rms_norm[(len(rows),)](
        rows, rows if more is None else more, weight, out, rows.stride(0), width, eps,
        ADD=more is not None, BLOCK=block, num_warps=warps,
    )  # fmt: skip
    return out.view(x.shape)


def rotate(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotary positions, in place. q, k (n, heads, t, head_dim), cos and sin (n or 1, t, head_dim)"""
    n, t, width = q.shape[0], q.shape[2], q.shape[3]
    cos, sin = cos.expand(n, t, width), sin.expand(n, t, width)
    heads = triton.next_power_of_2(max(q.shape[1], k.shape[1]))
    _rotate[(n * t, 2)](
        q, k, cos, sin, t, q.shape[1], k.shape[1],
        q.stride(0), q.stride(1), q.stride(2), k.stride(0), k.stride(1), k.stride(2), cos.stride(0), cos.stride(1),
        HEADS=heads, HALF=width // 2, num_warps=1 if heads * width <= 2048 else 4,
    )  # fmt: skip
    return q, k


def silu_times(both: torch.Tensor) -> torch.Tensor:
    """silu(first half) * second half of the last dimension."""
    width = both.shape[-1] // 2
    out = torch.empty(*both.shape[:-1], width, dtype=both.dtype, device=both.device)
    count = out.numel() // width
    _silu_times[(count, triton.cdiv(width, 1024))](both, out, width, BLOCK=1024, num_warps=4)
    return out


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor] | None, pools: Pools,
    layer: int, rows: Rows, scale: float, splits: int = 0, tuning: tuple[int, int, int] | None = None,
) -> torch.Tensor:  # fmt: skip
    """Store the newest key and value of each row, and attend to them, to the row's own before and to its prompt's.

    q (n, heads, 1, head_dim), k and v (n, kv_heads, 1, head_dim) -> (n, 1, heads, head_dim). `angles`: the cosines and
    sines (n, 1, head_dim) that q and k still have to be rotated by. `splits`: one of SPLITS; 0: as the rows ask for.
    """
    n, heads, _, width = q.shape
    keys, kv_heads = pools.keys[layer], k.shape[1]
    group = heads // kv_heads
    cos, sin = angles or (q, q)
    out = torch.empty(n, 1, heads, width, dtype=q.dtype, device=q.device)
    splits = splits or _splits(n * kv_heads)
    block, warps, stages = tuning or _tuning(splits, pools.table.shape[1] * PAGE, q.device)
    parts = torch.empty(n * heads, splits, width, device=q.device) if splits > 1 else out
    sums = torch.empty(2, n * heads, splits, device=q.device) if splits > 1 else out
    _attend[(kv_heads, n, splits)](
        q, k, v, cos, sin, keys, pools.values[layer], out, parts, sums, n * heads * splits,
        pools.table, rows.prefix_length, rows.slot, rows.length, rows.done,
        scale, q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1), cos.stride(0),
        pools.table.shape[1], keys.stride(0),
        KV_HEADS=kv_heads, GROUP=group, PADDED=max(16, triton.next_power_of_2(group)), HALF=width // 2,
        ROTATE=angles is not None, PAGE=PAGE, SPLITS=splits, BLOCK=block, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    if splits > 1:
        _joined[(n * heads,)](parts, sums, out, n * heads * splits, SPLITS=splits, WIDTH=width, num_warps=1)
    return out


def _splits(programs: int) -> int:
    """Into how many parts a text is split, each read by a program of its own, where there are few of them."""
    return SPLITS[2 if programs < BUSY // 8 else 1 if programs < BUSY else 0]


@functools.cache
def _tuning(splits: int, longest: int, device: torch.device) -> tuple[int, int, int]:
    if splits > 1 or longest <= LONG:
        return TUNING[splits]
    block, warps, stages = LONG_TUNING
    large = device.type == "cuda" and _shared_memory(device) >= STAGE_BYTES
    return block, warps, stages + large


def _shared_memory(device: torch.device) -> int:
    properties: Any = torch.cuda.get_device_properties(device)  # torch's stubs do not know all of them
    return int(properties.shared_memory_per_block_optin)


def pick(
    logits: torch.Tensor, allowed: torch.Tensor | None, rows: Rows, ends: torch.Tensor, written: torch.Tensor,
    logprobs: torch.Tensor, temperature: torch.Tensor, limit: torch.Tensor, _: Any = None,
) -> None:  # fmt: skip
    """Draw each row's next token and move the row on by one. logits (n, vocabulary), fp32

    The draw is argmax(x - log(-log(u))), with noise that depends on the row's seed and position only, so a response
    does not depend on which others were generated with it. `allowed`: the logits with what must not be drawn at -inf.
    """
    n, vocabulary = logits.shape
    _pick[(n,)](
        logits, logits if allowed is None else allowed, temperature, limit, ends, rows.token, rows.position, rows.slot,
        rows.length, rows.done, rows.seed, written, logprobs, vocabulary, len(ends), written.shape[1],
        CUT=allowed is not None, LANES=1024, num_warps=8,
    )  # fmt: skip


def compile_all(config: Any, dtype: torch.dtype, device: torch.device) -> None:
    """Compile every kernel as a model of this shape needs it, all at once: most of the time is the compilers' own."""
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    width = head_width(config)
    inner = getattr(config, "intermediate_size", config.hidden_size)
    make = functools.partial(torch.zeros, device=device)
    pools = Pools.of(make(1, 1, 2, kv_heads, PAGE, width, dtype=dtype), make(16, 2, dtype=torch.int32))
    rows = Rows(make(7, 16, dtype=torch.int64))
    hidden, both = make(2, 1, config.hidden_size), make(2, 1, 2 * inner, dtype=dtype)
    states = make(2, 1, heads + 2 * kv_heads, width, dtype=dtype).transpose(1, 2)
    q, k, v = states.split([heads, kv_heads, kv_heads], 1)
    angle, logits = make(2, 1, width), make(2, config.vocab_size)
    written, number = make(16, 16, dtype=torch.int32), make((), dtype=torch.int64)
    calls = [
        lambda: pick(logits, None, rows, written[0, :1], written, make(16, 16), make(()), number),
        *(functools.partial(attend, q, k, v, (angle, angle), pools, 0, rows, 1.0, n) for n in SPLITS),
        lambda: attend(q, k, v, (angle, angle), pools, 0, rows, 1.0, 1, _tuning(1, LONG + 1, device)),
        lambda: rotate(q, k, angle, angle),
        lambda: rms_norm(hidden, hidden[0, 0], 1e-5, dtype),
        lambda: rms_norm(hidden, hidden[0, 0], 1e-5, dtype, hidden.to(dtype)),
        lambda: silu_times(both),
    ]

    def on_device(call: Any) -> None:
        with torch.cuda.device(device):  # which is a thread's own
            call()

    triton.runtime.driver.active.get_current_device()  # once, before the threads would all do it
    with ThreadPoolExecutor(len(calls)) as threads:
        for done in [threads.submit(on_device, call) for call in calls]:
            done.result()


@triton.jit
def _rms_norm(x, more, weight, out, stride, width, eps, ADD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = tl.load(x + row * stride + at, inside, other=0.0).to(tl.float32)
    if ADD:
        value += tl.load(more + row * width + at, inside, other=0.0).to(tl.float32)
        tl.store(x + row * stride + at, value, inside)
    scale = tl.rsqrt(tl.sum(value * value) / width + eps)
    tl.store(out + row * width + at, value * scale * tl.load(weight + at, inside, other=0.0).to(tl.float32), inside)


@triton.jit(do_not_specialize=["t"])
def _rotate(
    q, k, cos, sin, t, q_heads, k_heads, q_n, q_h, q_t, k_n, k_h, k_t, c_n, c_t,
    HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    n, place = (tl.program_id(0) // t).to(tl.int64), (tl.program_id(0) % t).to(tl.int64)
    head, at = tl.arange(0, HEADS)[:, None], tl.arange(0, HALF)[None, :]
    c1 = tl.load(cos + n * c_n + place * c_t + at).to(tl.float32)
    c2 = tl.load(cos + n * c_n + place * c_t + HALF + at).to(tl.float32)
    s1 = tl.load(sin + n * c_n + place * c_t + at).to(tl.float32)
    s2 = tl.load(sin + n * c_n + place * c_t + HALF + at).to(tl.float32)
    if tl.program_id(1) == 0:
        first = q + n * q_n + place * q_t + head * q_h + at
        inside = (head < q_heads) & (at < HALF)
    else:
        first = k + n * k_n + place * k_t + head * k_h + at
        inside = (head < k_heads) & (at < HALF)
    a = tl.load(first, inside, other=0.0).to(tl.float32)
    b = tl.load(first + HALF, inside, other=0.0).to(tl.float32)
    tl.store(first, a * c1 - b * s1, inside)
    tl.store(first + HALF, b * c2 + a * s2, inside)


@triton.jit
def _silu_times(both, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    a = tl.load(both + row * 2 * width + at, inside, other=0.0).to(tl.float32)
    b = tl.load(both + row * 2 * width + width + at, inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, a / (1.0 + tl.exp(-a)) * b, inside)


@triton.jit(do_not_specialize=["columns", "sum_count"])
def _attend(
    q, k, v, cos, sin, keys, values, out, parts, sums, sum_count, table, prefix_length, slot, length, done, scale,
    q_n, q_h, k_n, k_h, v_n, v_h, c_n, columns, page_size,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, PADDED: tl.constexpr, HALF: tl.constexpr, ROTATE: tl.constexpr,
    PAGE: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Head by head in two halves, which rotation mixes: q1 and q2, k1 and k2. The first split has the newest token too.

    Places count through the pages of a row: the prompt's from 0 on, its own from `own_page * PAGE` on.
    """
    kv, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    WIDTH: tl.constexpr = 2 * HALF
    half, whole = tl.arange(0, HALF), tl.arange(0, WIDTH)
    member = tl.arange(0, PADDED)[:, None]
    at_q = q + row * q_n + (kv * GROUP + member) * q_h + half[None, :]
    inside = (member < GROUP) & (half[None, :] < HALF)
    q1, q2 = tl.load(at_q, inside, other=0.0), tl.load(at_q + HALF, inside, other=0.0)  # (PADDED, HALF)
    at_k = k + row * k_n + kv * k_h + half
    k1, k2 = tl.load(at_k), tl.load(at_k + HALF)  # (HALF,)
    newest = tl.load(v + row * v_n + kv * v_h + whole)  # (WIDTH,)
    if ROTATE:
        at_c, at_s = cos + row * c_n + half, sin + row * c_n + half
        c1, c2 = tl.load(at_c).to(tl.float32), tl.load(at_c + HALF).to(tl.float32)
        s1, s2 = tl.load(at_s).to(tl.float32), tl.load(at_s + HALF).to(tl.float32)
        a, b = q1.to(tl.float32), q2.to(tl.float32)
        q1, q2 = (a * c1 - b * s1).to(q1.dtype), (b * c2 + a * s2).to(q2.dtype)
        a, b = k1.to(tl.float32), k2.to(tl.float32)
        k1, k2 = (a * c1 - b * s1).to(k1.dtype), (b * c2 + a * s2).to(k2.dtype)
    live = tl.load(done + row) == 0
    split = tl.program_id(2)
    first = split == 0
    stores = live & first
    shared_count, own_count = tl.load(prefix_length + row).to(tl.int32), tl.load(length + row).to(tl.int32)
    own_page = (shared_count + PAGE - 1) // PAGE
    pages = table + tl.load(slot + row) * columns
    of_head = kv * (PAGE * WIDTH)
    last_page = tl.load(pages + own_page + own_count // PAGE, live, other=0).to(tl.int64)
    to = last_page * page_size + of_head + own_count % PAGE * WIDTH
    tl.store(keys + to + half, k1, half < tl.where(stores, HALF, 0))
    tl.store(keys + to + HALF + half, k2, half < tl.where(stores, HALF, 0))
    tl.store(values + to + whole, newest, whole < tl.where(stores, WIDTH, 0))
    # the newest begins the running softmax: the highest score, the sum of exp(score - highest), the weighted values
    same = q1.to(tl.float32) * k1.to(tl.float32) + q2.to(tl.float32) * k2.to(tl.float32)
    highest = tl.where(first, tl.sum(same, 1) * scale, -1.0e30)  # (PADDED,)
    total = tl.zeros((PADDED,), tl.float32) + tl.where(first, 1.0, 0.0)
    result = tl.zeros((PADDED, WIDTH), tl.float32) + tl.where(first, newest.to(tl.float32), 0.0)[None, :]
    shared_count = tl.where(live, shared_count, 0)  # a row that is done reads nothing
    own_count = tl.where(live, own_count, 0)
    turn = (shared_count + BLOCK - 1) // BLOCK  # from this block on, they are its own
    skipped = own_page * (PAGE // BLOCK) - turn  # blocks of the prompt's last page that are empty
    own_end = own_page * PAGE + own_count
    of_block = tl.arange(0, BLOCK)
    inner = of_block[:, None] * WIDTH
    count = turn + (own_count + BLOCK - 1) // BLOCK
    share = (count + SPLITS - 1) // SPLITS
    start = split * share
    count = tl.minimum(count, start + share)
    # looked up a block ahead: a look-up and what depends on it in one turn would leave no stage to read ahead in
    page = tl.load(pages + (start + tl.where(start < turn, 0, skipped)) // (PAGE // BLOCK), start < count, other=0)
    for number in range(start, count):
        block = number + tl.where(number < turn, 0, skipped)
        end = tl.where(number < turn, shared_count, own_end)
        begin = page.to(tl.int64) * page_size + of_head + block % (PAGE // BLOCK) * (BLOCK * WIDTH)
        place = block * BLOCK + of_block
        there = place[:, None] < end
        p1 = tl.load(keys + begin + (inner + half[None, :]), there, other=0.0)  # (BLOCK, HALF)
        p2 = tl.load(keys + begin + (inner + HALF + half[None, :]), there, other=0.0)
        past = tl.load(values + begin + (inner + whole[None, :]), there, other=0.0)  # (BLOCK, WIDTH)
        after = number + 1 + tl.where(number + 1 < turn, 0, skipped)
        page = tl.load(pages + after // (PAGE // BLOCK), number + 1 < count, other=0)
        score = tl.dot(q1, tl.trans(p1), input_precision="ieee")  # (PADDED, BLOCK)
        score = tl.dot(q2, tl.trans(p2), score, input_precision="ieee") * scale
        score = tl.where(place[None, :] < end, score, -1.0e30)
        now = tl.maximum(highest, tl.max(score, 1))
        weight = tl.exp(score - now[:, None])
        shrink = tl.exp(highest - now)
        total = total * shrink + tl.sum(weight, 1)
        result = result * shrink[:, None] + tl.dot(weight.to(past.dtype), past, input_precision="ieee")
        highest = now
    head = row * KV_HEADS * GROUP + kv * GROUP + member
    valid = (member < GROUP) & (whole[None, :] < WIDTH)
    if SPLITS == 1:
        tl.store(out + head * WIDTH + whole[None, :], result / total[:, None], valid)
    else:
        place = head * SPLITS + split
        tl.store(parts + place * WIDTH + whole[None, :], result, valid)
        tl.store(sums + place, highest[:, None], member < GROUP)
        tl.store(sums + sum_count + place, total[:, None], member < GROUP)


@triton.jit(do_not_specialize=["sum_count"])
def _joined(parts, sums, out, sum_count, SPLITS: tl.constexpr, WIDTH: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    split, whole = tl.arange(0, SPLITS), tl.arange(0, WIDTH)
    highest = tl.load(sums + head * SPLITS + split)
    weight = tl.exp(highest - tl.max(highest))
    total = tl.sum(weight * tl.load(sums + sum_count + head * SPLITS + split))
    part = tl.load(parts + (head * SPLITS + split)[:, None] * WIDTH + whole[None, :])
    tl.store(out + head * WIDTH + whole, tl.sum(part * weight[:, None], 0) / total)


@triton.jit(do_not_specialize=["end_count", "capacity"])
def _pick(
    logits, allowed, temperature, limit, ends, token, position, slot, length, done, seed, written, logprobs,
    vocabulary, end_count, capacity, CUT: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    if tl.load(done + row) == 0:
        heat = tl.load(temperature)
        greedy = heat <= 0.0
        scale = 1.0 / tl.where(greedy, 1.0, heat)
        place = tl.load(position + row)
        key = tl.load(seed + row) + place * 7046029254386353131
        lane = tl.arange(0, LANES)
        highest = tl.full((LANES,), -1.0e30, tl.float32)  # of the logits, and the sum of exp(x - highest)
        total = tl.zeros((LANES,), tl.float32)
        best = tl.full((LANES,), -1.0e30, tl.float32)  # of the scores, which token it was, and its logit
        which = tl.zeros((LANES,), tl.int32)
        logit = tl.zeros((LANES,), tl.float32)
        for start in range(0, vocabulary, 4 * LANES):
            u0, u1, u2, u3 = tl.rand4x(key, start // 4 + lane, n_rounds=7)  # the fewest that pass every test
            for quarter in tl.static_range(4):
                u = u0 if quarter == 0 else u1 if quarter == 1 else u2 if quarter == 2 else u3
                at = start + quarter * LANES + lane
                inside = at < vocabulary
                x = tl.load(logits + row * vocabulary + at, inside, other=-1.0e30).to(tl.float32)
                x = tl.where(inside, x * scale, -1.0e30)
                now = tl.maximum(highest, x)
                total = total * tl.exp(highest - now) + tl.exp(x - now)
                highest = now
                score = x
                if CUT:
                    y = tl.load(allowed + row * vocabulary + at, inside, other=-1.0e30).to(tl.float32)
                    score = tl.maximum(tl.where(inside, y * scale, -1.0e30), -1.0e30)
                score = score - tl.where(greedy, 0.0, tl.log(-tl.log(tl.maximum(u, 1e-30))))
                better = inside & (score > best)
                best = tl.where(better, score, best)
                which = tl.where(better, at, which)
                logit = tl.where(better, x, logit)
        top = tl.max(highest)
        mass = tl.log(tl.sum(total * tl.exp(highest - top))) + top
        winner = tl.max(best)
        chosen = tl.min(tl.where(best == winner, which, 2147483647))  # the first of equals, as torch.argmax does
        value = tl.max(tl.where((best == winner) & (which == chosen), logit, -1.0e30)) - mass
        count = tl.load(length + row)
        to = tl.load(slot + row) * capacity + count
        tl.store(written + to, chosen)
        tl.store(logprobs + to, value)
        tl.store(token + row, chosen.to(tl.int64))
        tl.store(position + row, place + 1)
        tl.store(length + row, count + 1)
        ended = count + 1 >= tl.load(limit)
        for n in range(end_count):
            ended = ended | (tl.load(ends + n) == chosen)
        tl.store(done + row, ended.to(tl.int64))
