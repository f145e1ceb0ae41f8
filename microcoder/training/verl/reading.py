"""A batch in TransferQueue -> our responses, and when each was begun, finished and judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import transfer_queue

from ...schema import Problem, Verdict
from ..collect import Response

FIELDS = ["index", "session_id", "extra_info", "prompts", "responses", "rollout_log_probs", "extra_fields"]


@dataclass
class Row:
    key: str  # TransferQueue's
    index: int  # of its problem among those of the run
    response: Response
    times: Mapping[str, float]  # started, ended, asked, judged: by the clocks of the nodes


def read(batch: Any, problems: Mapping[str, Problem], ends: Collection[int]) -> list[Row]:
    """In the order of problems and samples, whatever the order in which they came.

    A response is truncated when it does not end in an end token.
    """
    if not batch.keys:
        return []
    data = transfer_queue.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=FIELDS)
    tensors = {name: data[name].unbind() for name in ("prompts", "responses", "rollout_log_probs")}
    values = {name: list(data[name]) for name in ("index", "session_id", "extra_info", "extra_fields")}
    rows = []
    for n, key in enumerate(batch.keys):
        ids, extra = tensors["responses"][n].tolist(), values["extra_fields"][n]
        judged = extra["reward_extra_info"]
        response = Response(
            problem=problems[values["extra_info"][n]["problem"]],
            prompt=tensors["prompts"][n].tolist(),
            sample=int(values["session_id"][n]),
            ids=ids,
            logprobs=tensors["rollout_log_probs"][n].tolist(),
            truncated=not ids or ids[-1] not in ends,
            text=judged["text"],
            verdict=Verdict.from_dict(judged["verdict"]),
        )
        times = {name: {**extra, **judged}[name] for name in ("started", "ended", "asked", "judged")}
        rows.append(Row(key, int(values["index"][n]), response, times))
    return sorted(rows, key=lambda row: (row.index, row.response.sample))


def whole(rows: Sequence[Row], samples: int, problems: int) -> list[Response]:
    """The responses, of which verl must have brought all."""
    if len(rows) != samples * problems:
        raise RuntimeError(
            f"verl brought {len(rows)} responses of {problems} problems x {samples}: generation or judging failed; "
            "why is in Ray's logs, /tmp/ray/session_latest/logs"
        )
    return [row.response for row in rows]


def seconds(rows: Sequence[Row]) -> dict[str, float]:
    """As `collect.respond` has them: judging_s is what it took once generation was over."""
    generated = max(row.times["ended"] for row in rows)
    waited = max(0.0, max(row.times["judged"] for row in rows) - generated)
    least = max(row.times["asked"] + row.response.verdict.cpu_s for row in rows) - generated
    return {
        "generation_s": generated - min(row.times["started"] for row in rows),
        "judging_s": waited,
        "judging_floor_s": min(waited, max(0.0, least)),
    }
