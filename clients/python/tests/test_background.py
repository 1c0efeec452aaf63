"""The poller and the inbox reader for threads, against a server of this process in real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from headmark import Headmark, InboxPosition, InboxReader, UnreadPoller
from headmark.machines.poller import UnreadView
from headmark.poller import nothing
from tests.fake import problem


class Store:
    """One user: a counter, and an inbox."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.unread = 0
        self.rows: list[str] = ["a", "b"]
        self.cursor = 0
        self.is_over = False

    def change(self, unread: int) -> None:
        with self.changed:
            self.unread = unread
            self.changed.notify_all()

    def hold(self, is_new: Any) -> bool:
        with self.changed:
            return bool(self.changed.wait_for(lambda: is_new() or self.is_over, 20)) and is_new()


def handler(store: Store) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            url = httpx.URL(self.path)
            (self.inbox if url.path.endswith("/inbox") else self.badges)(url)

        def badges(self, url: httpx.URL) -> None:
            tag = self.headers.get("if-none-match")
            if "wait" in url.params and not store.hold(lambda: tag != f'"{store.unread}"'):
                return self.answer(304, b"")
            counters = '{"mention": {"unread": %d, "head": %d}}' % ((store.unread,) * 2)  # noqa: UP031
            body = f'{{"user_id": "42", "epoch": "e", "degraded": false, "counters": {counters}}}'
            return self.answer(200, body.encode(), f'"{store.unread}"')

        def inbox(self, url: httpx.URL) -> None:
            after = int(url.params.get("after", 0))
            if "wait" in url.params:
                store.hold(lambda: len(store.rows) > after)
            items = ", ".join(f'{{"seq": {n + 1}}}' for n in range(after, len(store.rows)))
            end = f'"epoch": "i", "next_after": {len(store.rows)}, "has_more": false'
            self.answer(200, f'{{"items": [{items}], {end}}}'.encode())

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            store.cursor += 1
            self.answer(200, b"{}")

        def answer(self, status: int, body: bytes, tag: str = "") -> None:
            self.send_response(status)
            self.send_header("etag", tag)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def headmark(store: Store) -> Iterator[Headmark]:
    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """The client has gone: it cancelled a poll."""

    with Server(("127.0.0.1", 0), handler(store)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with Headmark(f"http://127.0.0.1:{server.server_port}") as client:
            yield client
        with store.changed:
            store.is_over = True
            store.changed.notify_all()
        server.shutdown()
        thread.join()


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def unread(view: UnreadView) -> int | None:
    summary = view["summary"]
    return summary["counters"]["mention"]["unread"] if summary else None


def test_views_come_as_they_change(headmark: Headmark, store: Store) -> None:
    seen = []
    threads = threading.active_count()
    with UnreadPoller(headmark, "42") as poller:
        for view in poller:
            seen.append(unread(view))
            if seen[-1] == 0:
                store.change(5)
            if seen[-1] == 5:
                # From another thread, as a worker would.
                threading.Thread(target=poller.stop).start()
    assert seen[-2:] == [5, 5]
    assert view["status"] == "idle"
    # The poll that was held is cancelled: no thread is left waiting. One is of the test's server.
    wait_until(lambda: threading.active_count() <= threads + 2)
    with pytest.raises(RuntimeError, match="stopped"):
        poller.start()


def test_an_iteration_ends_with_a_poller_that_has_failed() -> None:
    refusal = problem(403, "forbidden")
    statuses: list[str] = []

    def iterate() -> None:
        for view in poller:
            statuses.append(view["status"])

    with Headmark("http://h", transport=httpx.MockTransport(lambda _: refusal)) as client:
        poller = UnreadPoller(client, "42")
        poller.start()
        thread = threading.Thread(target=iterate, daemon=True)
        thread.start()
        wait_until(lambda: "failed" in statuses)
        poller.stop()
        thread.join(5)
    assert not thread.is_alive()
    assert statuses[-2:] == ["failed", "idle"]


def test_a_reset_is_shown_at_once(headmark: Headmark, store: Store) -> None:
    store.unread = 3
    with UnreadPoller(headmark, "42") as poller:
        next(view for view in poller if unread(view) == 3)
        poller.reset("counters", "mention")
        assert unread(poller.view) == 0


def test_a_poller_that_was_not_started(headmark: Headmark) -> None:
    poller = UnreadPoller(headmark, "42")
    poller.refresh()
    poller.signal("offline")
    poller.stop()
    assert poller.view["status"] == "idle"


@pytest.mark.parametrize("stops_itself", [False, True])
def test_items_come_in_a_thread_that_may_block(
    headmark: Headmark, store: Store, stops_itself: bool
) -> None:
    got: list[int] = []
    done = threading.Event()
    threads = set()

    def on_items(items: list[Any], position: InboxPosition) -> None:
        threads.add(threading.current_thread().name)
        got.extend(entry["seq"] for entry in items)
        if stops_itself:
            reader.stop()
        done.set()

    reader = InboxReader(
        headmark, "42", position=None, on_items=on_items, on_reset=done.clear, device="phone"
    )
    reader.start()
    assert done.wait(5)
    reader.stop()
    assert got == [1, 2]
    assert store.cursor == 1
    assert reader.status == "idle"
    assert threads.isdisjoint({"MainThread", "headmark"})


def test_a_stop_does_not_wait_for_ever_for_a_callback(
    headmark: Headmark, caplog: pytest.LogCaptureFixture
) -> None:
    """It may wait for a lock that the thread of the stop has."""
    lock = threading.Lock()
    is_called, is_over = threading.Event(), threading.Event()

    def on_items(*_: object) -> None:
        is_called.set()
        with lock:
            is_over.set()

    reader = InboxReader(
        headmark, "42", position=None, on_items=on_items, on_reset=nothing, timeout_s=0.2
    )
    with lock:
        reader.start()
        assert is_called.wait(5)
        stopping = threading.Thread(target=reader.stop, daemon=True)
        stopping.start()
        stopping.join(5)
        hung = stopping.is_alive()
    assert is_over.wait(5)
    assert not hung
    assert caplog.records == []


def test_every_stop_waits_for_the_end(headmark: Headmark) -> None:
    is_called, is_over = threading.Event(), threading.Event()
    stored: list[bool] = []

    def on_items(*_: object) -> None:
        is_called.set()
        stored.append(is_over.wait(5))

    reader = InboxReader(headmark, "42", position=None, on_items=on_items, on_reset=nothing)
    reader.start()
    assert is_called.wait(5)
    stops = [threading.Thread(target=reader.stop) for _ in range(3)]
    for stop in stops:
        stop.start()
        stop.join(0.1)
    assert all(stop.is_alive() for stop in stops)
    is_over.set()
    reader.stop()
    assert (stored, reader.status) == ([True], "idle")
    for stop in stops:
        stop.join(5)
    reader.stop()


def test_a_transport_for_one_kind_only() -> None:
    class SyncOnly(httpx.BaseTransport):
        pass

    with (
        Headmark("http://h", transport=SyncOnly()) as client,
        pytest.raises(TypeError, match="AsyncBaseTransport"),
    ):
        UnreadPoller(client, "42")
