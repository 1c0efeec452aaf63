"""What is sent, what is sent again, and what is raised. Each test runs on both clients."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import headmark
from headmark import HeadmarkError, Limits, NoAnswerError, ProblemError, routes
from headmark.call import REPEATABLE
from headmark.client import USER_AGENT, user_agent
from tests.fake import Fake, Kind, Scripted, problem

BADGE = {"badge": "mention", "unread": 1, "head": 1, "revision": 1}
DONE = httpx.Response(200, json=BADGE)
CUT = httpx.ReadError("cut")
INCREMENT = routes.increment_badge("42", "mention")
# Without a key, an id or a position: a repeat would do it twice.
# It may clear what arrived between the two.
RESET = routes.reset_badge("42", "mention")


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


def attempts(fake: Fake, call: Any, **options: Any) -> int:
    with contextlib.suppress(HeadmarkError):
        fake.send(call, **options)
    return len(fake.requests)


def test_sends_what_the_call_says(kind: Kind) -> None:
    fake = Fake(kind, [DONE], token="secret")
    call = routes.increment_badge(42, "mention", by=3, idempotency_key="comment-9001")
    assert fake.send(call) == BADGE
    (request,) = fake.requests
    assert request.method == "POST"
    assert str(request.url) == "http://headmark.test/v1/users/42/badges/mention/increment"
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["idempotency-key"] == "comment-9001"
    assert request.headers["cache-control"] == "no-store"
    assert len(request.headers["x-request-id"]) == 32
    assert json.loads(request.content) == {"by": 3}


def test_names_are_quoted_and_cannot_leave_the_route(kind: Kind) -> None:
    fake = Fake(kind, [DONE])
    fake.send(routes.get_view("42", "page", "a/b?c"))
    assert fake.requests[0].url.raw_path == b"/v1/users/42/views/page/a%2Fb%3Fc"
    for name in ("", ".", ".."):
        with pytest.raises(ValueError, match="post_id"):
            fake.send(routes.delete_post("42", name))
    assert len(fake.requests) == 1


def test_204_has_no_data(kind: Kind) -> None:
    calls: list[Any] = [routes.delete_post("42", "p"), routes.unfollow_user("42", "7")]
    for call in calls:
        assert Fake(kind, [httpx.Response(204)]).send(call) is None


def test_a_tag_and_304(kind: Kind) -> None:
    fake = Fake(kind, [httpx.Response(304, headers={"etag": '"t1"', "x-poll-interval": "30"})])
    answer = fake.fetch(routes.get_feed("42", wait=20), tag='"t1"')
    assert (answer.is_modified, answer.data, answer.poll_interval_s) == (False, None, 30.0)
    assert fake.requests[0].headers["if-none-match"] == '"t1"'
    # The server may hold it for as long as asked.
    assert fake.requests[0].extensions["timeout"]["read"] == 30.0


def test_a_304_that_was_not_asked_for_is_no_answer(kind: Kind) -> None:
    with pytest.raises(NoAnswerError, match="malformed: status 304"):
        Fake(kind, [httpx.Response(304)]).send(routes.get_feed("42"))


def test_a_problem(kind: Kind) -> None:
    errors = [{"pointer": "/items/3/by", "detail": "must be between 1 and 1000000"}]
    fake = Fake(kind, [problem(422, "invalid_body", errors=errors)])
    with pytest.raises(ProblemError) as raised:
        fake.send(routes.increment_badges(items=[]))
    error = raised.value
    assert (error.status, error.code, error.detail) == (422, "invalid_body", "Why.")
    assert (error.where, error.request_id) == (errors, "r-1")
    assert error.request == "POST /v1/badges/increment"
    assert "/items/3/by: must be between" in str(error)
    assert len(fake.requests) == 1
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.status, copy.where) == (str(error), 422, errors)


def test_no_answer(kind: Kind) -> None:
    with pytest.raises(NoAnswerError) as raised:
        Fake(kind, [httpx.ReadTimeout("late")]).send(INCREMENT)
    assert (raised.value.reason, raised.value.was_sent) == ("timeout", True)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize(
    "body", [b"<h1>Sign in</h1>", b"[]", b"", b"null", b"5", b'{"badge": "men', b"[" * 100_000]
)
@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_a_success_that_is_not_of_headmark(kind: Kind, status: int, body: bytes) -> None:
    """It is no answer: nobody knows whether the request took effect."""
    answer = httpx.Response(status, content=b"" if status == 204 else body)
    with pytest.raises(NoAnswerError) as raised:
        Fake(kind, [answer]).send(INCREMENT)
    assert (raised.value.reason, raised.value.was_sent) == ("malformed", True)
    assert attempts(Fake(kind, [answer]), INCREMENT) == 3
    assert attempts(Fake(kind, [answer]), RESET) == 1


def test_repeats_an_increment_under_one_key(kind: Kind) -> None:
    fake = Fake(kind, [CUT, problem(503, "outcome_unknown", "2"), DONE])
    assert fake.send(INCREMENT) == BADGE
    keys = {request.headers["idempotency-key"] for request in fake.requests}
    ids = {request.headers["x-request-id"] for request in fake.requests}
    assert (len(fake.requests), len(keys), len(ids)) == (3, 1, 1)
    # Backoff of 1 s, then what the server asks for, each with its random part.
    assert fake.clock.pauses == [2.0, 4.0]


def test_another_increment_has_another_key(kind: Kind) -> None:
    fake = Fake(kind, [DONE])
    fake.send(INCREMENT)
    fake.send(INCREMENT)
    first, second = (request.headers["idempotency-key"] for request in fake.requests)
    assert first != second


def test_without_retries_no_key_is_made(kind: Kind) -> None:
    fake = Fake(kind, [CUT])
    assert attempts(fake, INCREMENT, retries=0) == 1
    assert "idempotency-key" not in fake.requests[0].headers


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        # Nobody knows whether it took effect.
        (CUT, 1),
        (httpx.ReadTimeout("late"), 1),
        (httpx.Response(502), 1),
        (httpx.Response(503), 1),
        (httpx.Response(429), 1),
        (problem(503, "outcome_unknown", "1"), 1),
        (problem(500, "internal_error"), 1),
        # Nothing changed.
        (problem(503, "overloaded", "1"), 3),
        (problem(503, "store_unavailable", "1"), 3),
        (problem(503, "shutting_down", "1"), 3),
        (problem(429, "rate_limited", "1"), 3),
        (httpx.ConnectError("refused"), 3),
        (httpx.ConnectTimeout("refused"), 3),
        # It will not get better.
        (problem(404, "not_found"), 1),
        (problem(409, "too_many"), 1),
    ],
)
def test_what_a_repeat_might_do_twice(kind: Kind, failure: Scripted, expected: int) -> None:
    for call in (RESET, routes.delete_dot("mall")):
        assert attempts(Fake(kind, [failure]), call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (INCREMENT, 3),
        (routes.get_feed("42"), 3),
        (routes.put_post("42", "p"), 3),
        (routes.patch_settings("42", share_receipts=False), 3),
        (routes.delete_post("42", "p"), 3),
        # It might delete what came in between.
        (routes.delete_badge("42", "mention"), 1),
        (routes.delete_channel("system"), 1),
        (routes.delete_dot("mall"), 1),
        (routes.reset_badge("42", "mention", up_to=5), 3),
        (routes.send_direct("42", client_id="c-1", content="Hi", sender_id=7), 3),
        (routes.query_badges(user_ids=[1]), 3),
        (routes.light_dot("mall"), 3),
        (RESET, 1),
    ],
)
def test_what_is_repeated_after_no_answer(kind: Kind, call: Any, expected: int) -> None:
    assert attempts(Fake(kind, [CUT]), call) == expected


def test_a_key_that_still_runs_is_asked_for_again(kind: Kind) -> None:
    running = problem(409, "idempotency_in_progress")
    assert Fake(kind, [CUT, running, DONE]).send(INCREMENT) == BADGE


def test_attempts_and_time_are_bounded(kind: Kind) -> None:
    fake = Fake(kind, [CUT], limits=Limits(retries=100, total_s=30))
    assert attempts(fake, INCREMENT) == 4
    assert fake.clock.pauses == [2.0, 4.0, 8.0]
    # A server that asks for a pause beyond the limit is not waited for.
    fake = Fake(kind, [problem(503, "overloaded", "60")])
    assert attempts(fake, INCREMENT) == 1
    assert fake.clock.pauses == []


@pytest.mark.parametrize("asked", ["0", "1", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_pauses_grow_whatever_the_server_asks_for(kind: Kind, asked: str) -> None:
    fake = Fake(kind, [problem(503, "overloaded", asked)])
    assert attempts(fake, INCREMENT, retries=3) == 4
    assert fake.clock.pauses == [2.0, 4.0, 8.0]


def test_a_rejected_token_is_renewed_once(kind: Kind) -> None:
    asked: list[bool] = []

    def token(is_rejected: bool) -> str:
        asked.append(is_rejected)
        return f"t{asked.count(True)}"

    fake = Fake(kind, [problem(401, "unauthorized"), DONE], token=token)
    assert fake.send(INCREMENT) == BADGE
    # It is asked for another one before it has to get one.
    assert asked == [False, False, True]
    # It is renewed once, and then used for the retries that follow.
    asked.clear()
    rejected, later = problem(401, "unauthorized"), problem(503, "overloaded")
    fake = Fake(kind, [rejected, later, DONE], token=token)
    assert fake.send(INCREMENT) == BADGE
    assert asked == [False, False, True, False]
    fake = Fake(kind, [problem(401, "unauthorized")], token=token)
    assert attempts(fake, INCREMENT) == 2
    assert attempts(Fake(kind, [problem(401, "unauthorized")], token="fixed"), INCREMENT) == 1


def test_a_replay_says_so(kind: Kind) -> None:
    replay = httpx.Response(200, json=BADGE, headers={"idempotent-replayed": "true"})
    assert Fake(kind, [replay]).fetch(INCREMENT).was_replayed
    assert not Fake(kind, [DONE]).fetch(INCREMENT).was_replayed


def test_respond_async(kind: Kind) -> None:
    accepted = httpx.Response(202, json={"operation_id": "5", "status": "pending"})
    fake = Fake(kind, [accepted])
    fake.send(routes.follow_user("42", "7", respond_async=True))
    assert fake.requests[0].headers["prefer"] == "respond-async"


def test_an_answer_that_drips_ends() -> None:
    fake = Fake("sync", [DONE])

    def drip(request: httpx.Request) -> httpx.Response:
        def body() -> Any:
            for _ in range(100):
                fake.clock.time += 1
                yield b" "

        return httpx.Response(200, content=body())

    fake.script = [drip]
    with pytest.raises(NoAnswerError, match="timeout"):
        fake.send(INCREMENT, retries=0)


def test_repeatable_posts_are_few() -> None:
    assert len(REPEATABLE) < 12


def test_the_user_agent_has_the_version_that_is_installed(tmp_path: Path) -> None:
    folder = tmp_path / "headmark-98.7.6.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: headmark\nVersion: 98.7.6\n")
    source = Path(headmark.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", "from headmark.client import USER_AGENT; print(USER_AGENT)"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(source)])},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "headmark-python/98.7.6\n"


def test_the_user_agent_of_a_source_tree(kind: Kind) -> None:
    assert user_agent("headmark-that-nobody-installed") == "headmark-python"
    fake = Fake(kind, [DONE])
    fake.send(INCREMENT)
    assert fake.requests[0].headers["user-agent"] == USER_AGENT
