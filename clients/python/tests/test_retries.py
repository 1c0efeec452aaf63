"""Every case of clients/vectors/retries.json: what the client sends again, and what it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headmark import Call, NoAnswerError, ProblemError, routes
from headmark.exchange import may_retry

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
CASES = json.loads((VECTORS / "retries.json").read_text())


def error_of(outcome: dict[str, Any]) -> ProblemError | NoAnswerError:
    if outcome["type"] == "no_answer":
        return NoAnswerError("POST /", "network")
    code = outcome.get("code")
    problem: Any = {"code": code} if code else None
    return ProblemError("POST /", outcome["status"], problem, {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['operation']}: {case['why']}")
def test_what_is_sent_again(case: dict[str, Any]) -> None:
    assert hasattr(routes, case["operation"])
    key = "k1" if case["has_key"] else None
    call: Call[Any] = Call(
        case["operation"], case["method"], case["path"], body=case["body"], idempotency_key=key
    )
    assert may_retry(call, error_of(case["outcome"])) == case["again"]
