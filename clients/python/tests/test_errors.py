"""What is left of an error answer, whoever wrote it."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from headmark import ProblemError
from headmark.errors import problem_of

WHOLE = {"code": "forbidden", "title": "Forbidden", "detail": "Why."}


def error_of(body: Any) -> ProblemError:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ProblemError("GET /", 403, problem_of(text), {})


@pytest.mark.parametrize(
    "errors", [["nope"], None, 5, "nope", {"pointer": "/a"}, [None], [{"pointer": "/a"}], [{}]]
)
def test_places_of_another_shape_are_left_out(errors: Any) -> None:
    error = error_of({**WHOLE, "errors": errors})
    assert str(error) == "GET /: 403 · forbidden · Why."
    assert error.where == []
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_places() -> None:
    places = [{"pointer": "/items/1/by", "detail": "must be at most 5"}]
    error = error_of({**WHOLE, "errors": ["nope", *places]})
    assert error.where == places
    assert str(error).endswith("/items/1/by: must be at most 5")


@pytest.mark.parametrize(
    "body",
    [
        {"code": "blocked"},
        {"code": "blocked", "title": "Blocked"},
        {**WHOLE, "code": 403},
        {**WHOLE, "detail": None},
        [WHOLE],
        "forbidden",
        None,
        b"<h1>403</h1>",
        b"",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_the_error_of_something_else_has_no_code(body: Any) -> None:
    error = error_of(body)
    assert (error.code, error.problem, str(error)) == (None, None, "GET /: 403")
