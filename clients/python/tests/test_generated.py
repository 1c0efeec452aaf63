"""The committed types and routes are those of the OpenAPI document."""

from __future__ import annotations

import json
from dataclasses import fields
from inspect import getmembers, isfunction, signature
from typing import Any, get_type_hints

from scripts.generate import OPENAPI, PACKAGE, generate
from typing_extensions import is_typeddict

from headmark import routes, types
from headmark.call import ONCE, REPEATABLE, Call

DOCUMENT: dict[str, Any] = json.loads(OPENAPI.read_text())


# It streams lines instead of one JSON value: read it with an HTTP library, line by line.
STREAMED = {"export_user"}


def test_nothing_has_drifted() -> None:
    for name, text in generate(DOCUMENT).items():
        hint = "run `python -m scripts.generate` in clients/python"
        assert (PACKAGE / name).read_text() == text, hint


def test_every_route_has_a_function() -> None:
    operations = {
        operation["operationId"]
        for path, methods in DOCUMENT["paths"].items()
        if path.startswith("/v1/")
        for operation in methods.values()
    }
    found = {name for name, function in getmembers(routes, isfunction)}
    assert found == operations - STREAMED
    assert found >= REPEATABLE | ONCE


def test_a_route_with_a_key_takes_one() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            names = [parameter["name"] for parameter in operation.get("parameters", [])]
            if path.startswith("/v1/") and operation["operationId"] not in STREAMED:
                function = getattr(routes, operation["operationId"])
                takes_key = "idempotency_key" in signature(function).parameters
                assert takes_key == ("Idempotency-Key" in names)


def test_a_call() -> None:
    call = routes.increment_badge(42, "mention", by=3, idempotency_key="comment-9001")
    assert isinstance(call, Call)
    assert call.name == "POST /v1/users/42/badges/mention/increment"
    assert call.json == {"by": 3}
    assert routes.reset_badge("me", "mention").json == {}
    assert routes.get_unread_summary(42, wait=30).params == {"wait": "30"}
    assert routes.list_chats(42, unread=False).params == {"unread": "false"}
    assert {field.name for field in fields(call)} >= {"path", "query", "body"}


def test_annotations_can_be_evaluated() -> None:
    """Libraries that check types while a program runs read them."""
    classes = [value for value in vars(types).values() if is_typeddict(value)]
    assert len(classes) > 100
    for value in classes:
        get_type_hints(value)
    for _, function in getmembers(routes, isfunction):
        get_type_hints(function)
