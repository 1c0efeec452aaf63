"""The child of a fork has no thread of its parent, and must not use its connections."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from headmark import Headmark, InboxReader, UnreadPoller, routes
from headmark.poller import nothing
from tests.fake import problem

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    # What Python 3.12 and later say of a process with threads. Here it is the point.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

GET = routes.get_settings("42")
SUMMARY = '{"user_id": "42", "epoch": "e", "degraded": false}'
PAGE = '{"items": [], "epoch": "e", "next_after": 0, "has_more": false}'


def in_child(check: Callable[[], object]) -> str:
    """What it returns there, or raises."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = repr(check())
        except BaseException as error:
            text = repr(error)
        os.write(writable, text.encode())
        os._exit(0)
    os.close(writable)
    try:
        has_ended, _, _ = select.select([readable], [], [], 10)
        return os.read(readable, 10_000).decode() if has_ended else "it hangs"
    finally:
        os.close(readable)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class Server(ThreadingHTTPServer):
    """Keeps connections, and the port of each request. Only `good` is a token."""

    daemon_threads = True

    def __init__(self) -> None:
        self.ports: list[int] = []
        super().__init__(("127.0.0.1", 0), handler(self.ports))

    def handle_error(self, *_: object) -> None:
        """A client has gone."""


def handler(ports: list[int]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            ports.append(self.client_address[1])
            body = (PAGE if "/inbox" in self.path else SUMMARY).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def headmark(server: Server) -> Iterator[Headmark]:
    with Headmark(f"http://127.0.0.1:{server.server_port}") as client:
        yield client


def test_a_child_has_connections_of_its_own(headmark: Headmark, server: Server) -> None:
    def send() -> None:
        for _ in range(2):
            headmark.send(GET)

    send()
    assert in_child(send) == "None"
    send()
    first, *_ = ports = server.ports
    assert [port == first for port in ports] == [True, True, False, False, True, True]
    assert ports[2] == ports[3]


def test_a_client_may_be_closed_in_both(headmark: Headmark) -> None:
    headmark.send(GET)
    assert in_child(headmark.close) == "None"
    headmark.send(GET)


def poller_of(headmark: Headmark) -> UnreadPoller:
    return UnreadPoller(headmark, "42", wait_s=0)


def reader_of(headmark: Headmark) -> InboxReader:
    return InboxReader(headmark, "42", position=None, on_items=nothing, on_reset=nothing, wait_s=0)


@pytest.mark.parametrize("make", [poller_of, reader_of])
def test_what_was_started_before_a_fork_says_so(
    headmark: Headmark, make: Callable[[Headmark], UnreadPoller | InboxReader]
) -> None:
    with make(headmark) as it:
        for check in (it.start, it.refresh, lambda: it.signal("offline")):
            assert "started before a fork" in in_child(check)
        # There is nothing to stop.
        assert in_child(it.stop) == "None"
        it.refresh()
    # One of the child's own is as any other.
    assert in_child(lambda: run(make(headmark))) == "None"


def run(it: UnreadPoller | InboxReader) -> None:
    with it:
        until = time.monotonic() + 5
        while (it.view["status"] if isinstance(it, UnreadPoller) else it.status) != "live":
            assert time.monotonic() < until
            time.sleep(0.01)


def test_an_iteration_does_not_wait_for_the_parent(headmark: Headmark) -> None:
    with poller_of(headmark) as poller:
        for view in poller:
            if view["status"] == "live":
                break
        assert "started before a fork" in in_child(lambda: list(poller))
        assert "started before a fork" in in_child(lambda: poller.reset("dots", "mall"))


def test_a_child_does_not_wait_for_a_renewal_of_its_parent() -> None:
    parent = os.getpid()
    is_called, may_end = threading.Event(), threading.Event()

    def token(is_rejected: bool) -> str:
        if is_rejected and os.getpid() == parent:
            is_called.set()
            may_end.wait(20)
        return "good" if is_rejected else "bad"

    def answer(request: httpx.Request) -> httpx.Response:
        is_good = request.headers["authorization"] == "Bearer good"
        return httpx.Response(200, json={}) if is_good else problem(401, "unauthorized")

    with Headmark("http://h", token=token, transport=httpx.MockTransport(answer)) as headmark:
        sending = threading.Thread(target=headmark.send, args=(GET,))
        sending.start()
        assert is_called.wait(5)
        assert in_child(lambda: headmark.send(GET)) == "{}"
        may_end.set()
        sending.join(5)
