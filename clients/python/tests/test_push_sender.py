"""The push sender of the examples, in front of a server of scripted answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from push_sender import PATIENT, send_pushes

from headmark import EventsPosition, Headmark, ProblemError
from headmark.machines.events import NOBODY
from tests.fake import problem
from tests.virtual import FakeClock


class Stopped(BaseException):
    """There is nothing more to read."""


class Memory:
    position: EventsPosition | None = None

    def load(self) -> EventsPosition | None:
        return self.position

    def save(self, position: EventsPosition) -> None:
        self.position = position


class Sender:
    """Reads pages, with an event for each of these users; by default one page."""

    def __init__(
        self, users: list[str], answer: Callable[[list[str]], httpx.Response], pages: int = 1
    ) -> None:
        self.users, self.answer, self.pages = users, answer, pages
        self.clock, self.store = FakeClock(), Memory()
        self.asked: list[list[str]] = []
        self.pushes: list[tuple[str, int, bool]] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/badges/query":
            users = json.loads(request.content)["user_ids"]
            if users == [NOBODY]:
                return httpx.Response(200, json={"items": [{"epoch": "e"}]})
            self.asked.append(users)
            return self.answer(users)
        page = self.store.position["after"] if self.store.position else 0
        if page == self.pages:
            raise Stopped
        items = [{"id": 1, "type": "unread", "data": {"user_id": user}} for user in self.users]
        return httpx.Response(200, json={"items": items, "next_after": page + 1, "has_more": False})

    def run(self) -> None:
        settings: Any = {"transport": httpx.MockTransport(self.handle), "clock": self.clock}
        with Headmark("http://h", limits=PATIENT, **settings) as headmark:
            push = lambda *of: self.pushes.append(of)  # noqa: E731
            send_pushes(headmark, self.store, cap=99, push=push)


def numbers(users: list[str]) -> httpx.Response:
    items = [{"user_id": user, "total": 99, "capped": user == "2"} for user in users]
    return httpx.Response(200, json={"items": items})


def erased(*places: int) -> httpx.Response:
    errors = [{"pointer": f"/user_ids/{at}", "detail": "was erased"} for at in places]
    return problem(410, "erased", errors=errors)


def test_pushes_each_user_once() -> None:
    sender = Sender(["1", "2", "1"], numbers)
    with pytest.raises(Stopped):
        sender.run()
    assert sender.pushes == [("1", 99, False), ("2", 99, True)]


def test_a_number_is_pushed_again_for_the_device_may_be_new() -> None:
    sender = Sender(["1"], numbers, pages=2)
    with pytest.raises(Stopped):
        sender.run()
    assert sender.pushes == [("1", 99, False)] * 2


def test_the_numbers_are_asked_for_until_the_server_is_back() -> None:
    failures = [httpx.ConnectError("refused")] * 9 + [httpx.ReadError("cut")]

    def answer(users: list[str]) -> httpx.Response:
        if failures:
            raise failures.pop(0)
        return numbers(users)

    sender = Sender(["1"], answer)
    with pytest.raises(Stopped):
        sender.run()
    assert sender.pushes == [("1", 99, False)]
    # Each with its random part.
    assert sender.clock.pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, *[120.0] * 4]


def test_erased_users_are_left_out() -> None:
    """The server need not name all of them at once."""

    def answer(users: list[str]) -> httpx.Response:
        if "2" in users:
            return erased(users.index("2"), users.index("4"))
        return erased(users.index("5")) if "5" in users else numbers(users)

    sender = Sender(["1", "2", "3", "4", "5"], answer)
    with pytest.raises(Stopped):
        sender.run()
    assert [user for user, *_ in sender.pushes] == ["1", "3"]
    assert sender.asked == [["1", "2", "3", "4", "5"], ["1", "3", "5"], ["1", "3"]]


def test_a_page_whose_users_are_all_erased() -> None:
    sender = Sender(["1"], lambda _: erased(0))
    with pytest.raises(Stopped):
        sender.run()
    assert (sender.asked, sender.pushes) == ([["1"]], [])
    assert sender.store.position


@pytest.mark.parametrize("answer", [problem(403, "forbidden"), problem(410, "erased"), erased(7)])
def test_what_the_sender_cannot_mend_ends_it(answer: httpx.Response) -> None:
    sender = Sender(["1"], lambda _: answer)
    with pytest.raises(ProblemError):
        sender.run()
    assert (len(sender.asked), sender.store.position) == (1, None)
