"""The requests and answers as OpenAPI describes them; Problem and Verdict by their own types."""

from __future__ import annotations

import functools
from typing import Any

from pydantic import TypeAdapter

from ..config import JudgeConfig
from ..judge.remote.http import SETTINGS
from ..schema import LANGUAGES, VERDICTS, Problem, Verdict
from .fusion import RUN

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
KEY: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The SHA-256 of the bytes as PUT."}
STATUSES = {
    400: "The body is not JSON.",
    401: "A token is needed.",
    403: "Pages in a browser may not ask.",
    404: "A problem that is named is not here (any more).",
    413: "More than this service takes at a time.",
    421: "Asked by a name that is not this machine's.",
    422: "What is asked for cannot be done; `error` says why.",
    429: "No room; see Retry-After.",
    503: "The service is about to end; see Retry-After.",
    504: "No room for a long time (for clients that try again only on this status).",
}


@functools.cache
def schemas() -> dict[str, Schema]:
    """Return the OpenAPI components."""
    found: dict[str, Schema] = {}
    for kind in (Problem, Verdict):
        schema = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
        found |= schema.pop("$defs", {})
        found[kind.__name__] = schema | {"additionalProperties": False}
    found["Problem"]["anyOf"] = [  # a kind, and what it cannot be judged without
        {"properties": {"kind": {"const": name}, needed[0]: {"minItems": 1}}, "required": needed}
        for name, needed in (
            ("stdin", ["tests"]), ("function", ["tests", "kind", "entry_point"]), ("assert", ["asserts", "kind"]),
        )
    ]
    found["Problem"]["properties"]["entry_point"]["minLength"] = 1
    found["Verdict"]["properties"]["verdict"]["enum"] = list(VERDICTS)
    options = JudgeConfig.model_json_schema()["properties"]
    found["Settings"] = _object({name: options[name] for name in SETTINGS})
    about = {"anyOf": [_ref("Problem"), KEY], "description": "The problem, or the key that it was PUT under."}
    candidate = {"problem": about, "code": TEXT, "completion": TEXT, "language": {"enum": list(LANGUAGES)}, "id": TEXT}
    either = {"oneOf": [{"required": ["code"]}, {"required": ["completion"]}]}
    found["Candidate"] = _object({**candidate, "settings": _ref("Settings")}, "problem") | either
    some = {"type": "array", "items": _object(candidate, "problem") | either, "minItems": 1}
    found["Candidates"] = _object({"candidates": some, "settings": _ref("Settings")}, "candidates")
    found["Refusal"] = _object({"error": TEXT}, "error")
    seconds = {"type": "number"}
    run: dict[str, Schema] = dict.fromkeys(RUN, TEXT)
    run |= {"run_timeout": seconds, "compile_timeout": seconds, "memory_limit_MB": {"type": "integer"}}
    run |= {"files": {"type": "object"}, "fetch_files": {"type": "array", "items": TEXT}}
    found["RunCode"] = _object(run, "code", "language")
    ident = {"anyOf": [TEXT, {"type": "integer"}]}
    found["Submit"] = _object(
        {"dataset": TEXT, "id": ident, "completion": TEXT, "config": {"type": "object"}}, "id", "completion", "config"
    )
    return found


def body(name: str) -> Schema:
    """The `openapi_extra` of a route that reads its body by itself."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _ref(name)}}}}


def answers(media_type: str, schema: Schema, *refusals: int) -> dict[int | str, Schema]:
    """The `responses` of a route."""
    found: dict[int | str, Schema] = {200: {"description": "Done.", "content": {media_type: {"schema": schema}}}}
    refusal = {"content": {"application/json": {"schema": _ref("Refusal")}}}
    return found | {status: {"description": STATUSES[status], **refusal} for status in (401, 403, 421, *refusals)}


def verdict() -> Schema:
    return _ref("Verdict")


def _object(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
    }  # fmt: skip


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
