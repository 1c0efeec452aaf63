"""Every case of clients/vectors/retries.json: what the client sends again, and what it does not."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from scripts.generate import OPENAPI

from headmark import Call, HeadmarkError, routes
from tests.fake import Fake, Kind, problem

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
CASES = json.loads((VECTORS / "retries.json").read_text())
TEMPLATES = {
    operation["operationId"]: template
    for template, methods in json.loads(OPENAPI.read_text())["paths"].items()
    for operation in methods.values()
}


def call_of(case: dict[str, Any]) -> Call[Any]:
    """By the function of the route, which takes only what the server knows."""
    pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", TEMPLATES[case["operation"]])
    found = re.fullmatch(pattern, case["path"])
    assert found, "the path is not of the operation"
    function = getattr(routes, case["operation"])
    call: Call[Any] = function(**found.groupdict(), **(case["body"] or {}))
    assert (call.method, call.url_path) == (case["method"], case["path"])
    if case["has_key"]:
        # The function of a route that ignores keys takes none.
        return replace(call, idempotency_key="k1")
    # Without a key, as a client that makes none.
    return replace(call, takes_key=False)


def answer_to(outcome: dict[str, Any]) -> httpx.Response | Exception:
    if "status" not in outcome:
        return httpx.ReadError("cut")
    if outcome["type"] == "no_answer":
        return httpx.Response(outcome["status"], content=outcome["body"].encode())
    if "code" in outcome:
        return problem(outcome["status"], outcome["code"])
    return httpx.Response(outcome["status"])


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['operation']}: {case['why']}")
def test_what_is_sent_again(case: dict[str, Any], kind: Kind) -> None:
    fake = Fake(kind, [answer_to(case["outcome"])])
    with contextlib.suppress(HeadmarkError):
        fake.send(call_of(case), retries=1)
    assert len(fake.requests) == (2 if case["again"] else 1)
