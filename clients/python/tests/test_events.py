"""The events reader against a log of events that loses its beginning, is restored, and is behind a
bad network. Each test runs on both readers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import httpx
import pytest

from headmark import (
    AsyncEventsReader,
    AsyncHeadmark,
    EventsGap,
    EventsPosition,
    EventsReader,
    FileStore,
    Headmark,
    ProblemError,
)
from headmark.machines.events import NOBODY
from tests.fake import problem
from tests.virtual import FakeClock

Kind = Literal["sync", "async"]


class Stopped(BaseException):
    """Ends a reader from below: there is nothing more to read."""


@dataclass
class Log:
    """The server's events. A held request that brings nothing ends the test."""

    epoch: int = 1
    first: int = 1
    events: list[str] = field(default_factory=list)
    faults: list[Any] = field(default_factory=list)
    asked: list[int | None] = field(default_factory=list)

    def restore(self, kept: int) -> None:
        self.epoch += 1
        self.events = self.events[: kept - self.first + 1]

    def handle(self, request: httpx.Request) -> httpx.Response:
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        if isinstance(fault, httpx.Response):
            return fault
        if request.url.path == "/v1/badges/query":
            return httpx.Response(200, json={"items": [{"epoch": f"e{self.epoch}"}]})
        query = request.url.params
        after = int(query["after"]) if "after" in query else None
        self.asked.append(after)
        head = self.first + len(self.events) - 1
        start = self.first - 1 if after is None else after
        if start < self.first - 1 or start > head:
            return problem(410, "gone")
        found = self.events[start - self.first + 1 :][: int(query["limit"])]
        if not found:
            raise Stopped
        items = [
            {"id": start + 1 + n, "type": "post", "data": {"post_id": post}}
            for n, post in enumerate(found)
        ]
        body = {"items": items, "next_after": start + len(found), "has_more": False}
        return httpx.Response(200, json=body)


class Memory:
    def __init__(self, position: EventsPosition | None = None) -> None:
        self.position = position

    def load(self) -> EventsPosition | None:
        return self.position

    def save(self, position: EventsPosition) -> None:
        self.position = position


class AsyncMemory(Memory):
    async def load(self) -> EventsPosition | None:  # type: ignore[override]
        return self.position

    async def save(self, position: EventsPosition) -> None:  # type: ignore[override]
        self.position = position


@dataclass
class World:
    kind: Kind
    log: Log = field(default_factory=Log)
    clock: FakeClock = field(default_factory=FakeClock)
    store: Any = None
    gaps: list[EventsGap] = field(default_factory=list)
    types: list[str] | None = None

    def __post_init__(self) -> None:
        self.store = self.store or (Memory() if self.kind == "sync" else AsyncMemory())

    def read(self, crash_at: str | None = None) -> list[str]:
        """What the app handled until there was nothing more, or it crashed."""
        handled: list[str] = []

        def handle(event: Any) -> None:
            if event["data"]["post_id"] == crash_at:
                raise Stopped
            handled.append(event["data"]["post_id"])

        options: Any = {"limit": 3, "types": self.types, "on_gap": self.gaps.append}
        transport: Any = httpx.MockTransport(self.log.handle)
        settings: Any = {"transport": transport, "clock": self.clock}

        def read() -> None:
            with Headmark("http://h", **settings) as client:
                for event in EventsReader(client, self.store, **options):
                    handle(event)

        async def read_async() -> None:
            async with AsyncHeadmark("http://h", **settings) as client:
                async for event in AsyncEventsReader(client, self.store, **options):
                    handle(event)

        with pytest.raises(Stopped):
            read() if self.kind == "sync" else asyncio.run(read_async())
        return handled


@pytest.fixture(params=["sync", "async"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_resumes_where_it_was(world: World) -> None:
    world.log.events = list("abcdefg")
    assert world.read() == list("abcdefg")
    assert world.store.position == {"epoch": "e1", "after": 7}
    world.log.events += "hi"
    assert world.read() == list("hi")
    assert world.gaps == []


def test_a_crash_brings_the_page_again(world: World) -> None:
    world.log.events = list("abcdefg")
    assert world.read(crash_at="e") == list("abcd")
    assert world.store.position == {"epoch": "e1", "after": 3}
    assert world.read() == list("defg")


def test_goes_through_outages(world: World) -> None:
    world.log.events = list("abc")
    world.log.faults = [
        httpx.ConnectError("refused"),
        problem(503, "overloaded", "7"),
        None,
        httpx.ReadTimeout("late"),
        httpx.Response(502),
    ]
    assert world.read() == list("abc")
    assert world.clock.pauses == [2.0, 9.0, 8.0, 16.0]


def test_pauses_grow_whatever_the_server_asks_for(world: World) -> None:
    world.log.events = list("abc")
    world.log.faults = [problem(503, "overloaded", after) for after in ("0", "1", "0", "9")]
    assert world.read() == list("abc")
    assert world.clock.pauses == [2.0, 4.0, 8.0, 17.0]


@pytest.mark.parametrize(
    "answer", [problem(403, "forbidden"), problem(404, "unknown_route"), httpx.Response(401)]
)
def test_the_caller_hears_of_other_problems(answer: httpx.Response) -> None:
    transport = httpx.MockTransport(lambda _: answer)
    with (
        Headmark("http://h", transport=transport) as client,
        pytest.raises(ProblemError, match=str(answer.status_code)),
    ):
        next(iter(EventsReader(client, Memory())))


def test_the_caller_hears_that_the_user_of_the_question_was_erased(world: World) -> None:
    world.log.events = list("abc")
    world.log.faults = [None, problem(410, "erased")]
    with pytest.raises(ProblemError, match="erased"):
        world.read()


def test_the_user_of_the_question_is_not_that_of_the_doctor() -> None:
    doctor = (Path(__file__).parents[3] / "src/app/cli/doctor.rs").read_text()
    assert 'default_value = "' in doctor
    assert f'default_value = "{NOBODY}"' not in doctor


def test_a_refusal_of_a_proxy_is_an_outage(world: World) -> None:
    world.log.events = list("abc")
    world.log.faults = [httpx.Response(404), httpx.Response(403), None, httpx.Response(431)]
    assert world.read() == list("abc")
    assert world.clock.pauses == [2.0, 4.0, 8.0]
    # Without a code, a 410 says nothing of the position.
    world.log.events += "d"
    world.log.faults = [httpx.Response(410)]
    assert (world.read(), world.gaps) == (["d"], [])


def test_events_that_expired(world: World) -> None:
    world.log.events = list("abc")
    world.read()
    world.log.first, world.log.events = 6, list("fg")
    assert world.read() == list("fg")
    assert world.gaps == [EventsGap("expired", {"epoch": "e1", "after": 3})]


@pytest.mark.parametrize("new", ["", "x", "xy", "xyz", "wxyz"])
def test_a_restore_brings_all_events_again(world: World, new: str) -> None:
    """However many events come after it: fewer than were lost, as many, or more."""
    world.log.events = list("abcd")
    world.read()
    world.log.restore(kept=2)
    world.log.events += new
    world.read()
    world.log.events += "!"
    world.read()
    assert world.gaps == [EventsGap("restored", {"epoch": "e1", "after": 4})]
    assert world.store.position == {"epoch": "e2", "after": 3 + len(new)}
    world.log.events += "?"
    assert world.read() == ["?"]


def test_a_restore_while_it_reads(world: World) -> None:
    """Between the page and the question for the epoch, or before the page."""
    for seed in range(20):
        dice = Random(seed)
        world.log = Log(events=list("abcd"))
        world.store.position, world.gaps = None, []
        world.read()
        world.log.events += "ef"
        number = dice.randrange(4)
        handle = world.log.handle

        def restoring(request: httpx.Request) -> httpx.Response:
            nonlocal number
            if number == 0:
                world.log.restore(kept=3)
                world.log.events += "XYZ"
            number -= 1
            return Log.handle(world.log, request)

        world.log.handle = restoring  # type: ignore[method-assign]
        world.read()
        world.log.handle = handle  # type: ignore[method-assign]
        world.log.events += "!"
        handled = world.read()
        assert handled[-1] == "!"
        if world.log.epoch == 2:
            assert [gap.reason for gap in world.gaps] == ["restored"]
            assert world.store.position == {"epoch": "e2", "after": 7}


def test_a_file_keeps_the_position(world: World, tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    world.store = FileStore(path)
    world.log.events = list("abcd")
    assert world.read(crash_at="d") == list("abc")
    world.store = FileStore(str(path))
    assert world.read() == ["d"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["events.json"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"items": [], "next_after": 0, "has_more": True},
        {"items": [{"id": 1, "type": "post", "data": {}}], "next_after": 0, "has_more": False},
        {"items": None, "next_after": 5, "has_more": False},
        {"items": [], "next_after": "5", "has_more": False},
    ],
)
def test_a_page_that_stands_still_or_is_none_is_an_outage(world: World, body: Any) -> None:
    position: EventsPosition = {"epoch": "e1", "after": 0}
    world.store.position = position
    world.log.events = list("abc")
    world.log.faults = [httpx.Response(200, json=body)] * 3
    assert world.read() == list("abc")
    assert world.clock.pauses == [2.0, 4.0, 8.0]


@pytest.mark.parametrize("body", [{}, {"items": []}, {"items": [{"epoch": 5}]}, {"items": [None]}])
def test_an_answer_without_an_epoch_is_an_outage(world: World, body: Any) -> None:
    world.log.events = list("abc")
    world.log.faults = [None, httpx.Response(200, json=body)]
    assert world.read() == list("abc")
    assert world.clock.pauses == [2.0]


def test_a_server_that_does_not_hold_requests_is_asked_seldom(world: World) -> None:
    empty = {"items": [], "next_after": 0, "has_more": False}
    world.log.faults = [
        httpx.Response(200, json=empty, headers={"x-poll-interval": "30"}),
        None,
        httpx.Response(200, json=empty),
    ]
    assert world.read() == []
    assert world.clock.pauses == [36.0, 1.2]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_types(kind: Kind) -> None:
    """Events of other types are passed by: the place moves, and where there may be more it is asked
    for at once."""
    pages = [
        {"items": [], "next_after": 40, "has_more": True},
        {"items": [], "next_after": 50, "has_more": False},
        {"items": [{"id": 57, "type": "unread", "data": {"post_id": "p"}}], "next_after": 60},
    ]
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/badges/query":
            return httpx.Response(200, json={"items": [{"epoch": "e"}]})
        asked.append(request.url.query.decode())
        if not pages:
            raise Stopped
        return httpx.Response(200, json={"has_more": False, **pages.pop(0)})

    world = World(kind, types=["unread", "post"])
    world.log.handle = answer  # type: ignore[method-assign]
    assert world.read() == ["p"]
    assert [part for query in asked for part in query.split("&") if part.startswith("after")] == [
        "after=40",
        "after=50",
        "after=60",
    ]
    assert all("types=unread%2Cpost" in query for query in asked)
    assert world.store.position == {"epoch": "e", "after": 60}
