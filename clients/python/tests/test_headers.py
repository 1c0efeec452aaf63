"""Values that cannot be a header: refused before anything is sent, by a text that does not hold
them. Each test runs on both clients."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import httpx
import pytest

from headmark import AsyncHeadmark, Headmark, NoAnswerError, routes
from tests.fake import Fake, Kind

SECRET = "hm_SECRET"
BAD = [f"{SECRET}\n{SECRET}", f"{SECRET} {SECRET}", f"{SECRET}é", f"{SECRET}\0"]
DONE = httpx.Response(200, json={})
GET = routes.get_settings("42")


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


def check_refusal(error: BaseException) -> None:
    """As a log or a task queue may keep it."""
    kept = "".join(traceback.format_exception(error)) + repr(error) + repr(pickle.dumps(error))
    assert SECRET not in kept


@pytest.mark.parametrize("token", [*BAD, ""])
def test_a_token_that_no_header_can_hold(kind: Kind, token: str) -> None:
    client: Any = Headmark if kind == "sync" else AsyncHeadmark
    with pytest.raises(ValueError, match="the token") as raised:
        client("http://h", token=token)
    check_refusal(raised.value)
    fake = Fake(kind, [DONE], token=lambda is_rejected: token)
    with pytest.raises(ValueError, match="the token") as raised:
        fake.send(GET)
    check_refusal(raised.value)
    assert fake.requests == []


@pytest.mark.parametrize("is_function", [False, True])
def test_the_newline_at_the_end_of_a_file_is_no_part_of_a_token(
    kind: Kind, is_function: bool
) -> None:
    token = f" {SECRET}\r\n"
    fake = Fake(kind, [DONE], token=(lambda is_rejected: token) if is_function else token)
    fake.send(GET)
    assert fake.requests[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("value", BAD)
def test_other_values(kind: Kind, value: str) -> None:
    fake = Fake(kind, [DONE])
    with pytest.raises(ValueError, match="the idempotency key") as raised:
        fake.send(routes.increment_badge("42", "mention", idempotency_key=value))
    check_refusal(raised.value)
    with pytest.raises(ValueError, match="the tag"):
        fake.fetch(GET, tag=value)
    assert fake.requests == []


def test_what_http_has_against_a_request_is_not_told(kind: Kind) -> None:
    """Its text may hold a header."""
    fake = Fake(kind, [httpx.LocalProtocolError(f"Illegal header value b'Bearer {SECRET}'")])
    with pytest.raises(NoAnswerError, match="LocalProtocolError") as raised:
        fake.send(GET)
    check_refusal(raised.value)


def test_a_tag_that_cannot_be_sent_back_is_none(kind: Kind) -> None:
    for tag, expected in (('W/"1.2"', 'W/"1.2"'), ('"é"', None), ('"a b"', None), ("", None)):
        answer = httpx.Response(200, json={}, headers={b"etag": tag.encode()})
        assert Fake(kind, [answer]).fetch(GET).etag == expected
