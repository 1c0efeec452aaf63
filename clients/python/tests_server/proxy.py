"""A proxy that treats requests badly: it delays, cuts, refuses and answers for the server."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from urllib.parse import urlsplit

FAULTS = ("delay", "cut_before", "cut_after", "cut_body", "429", "503", "bad_gateway")
HOP_BY_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive")


class FaultyProxy:
    """In front of a server, whose address may change. It is empty while the server is away."""

    def __init__(self, seed: int, upstream: Callable[[], str]) -> None:
        # How many of the requests are treated badly, from 0 to 1.
        self.badness = 0.0
        # Whether the server sees no tags: `If-None-Match` is dropped.
        self.drops_tags = False
        self.done: Counter[str] = Counter()
        self.upstream = upstream
        self._dice = Random(seed)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def draw(self) -> tuple[str, float]:
        """The fault of the next request, and a delay."""
        with self._lock:
            is_bad = self._dice.random() < self.badness
            fault = self._dice.choice(FAULTS) if is_bad else "none"
            self.done[fault] += 1
            return fault, self._dice.random() * 0.4 if fault == "delay" else 0.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """One of the two sides has gone, as it should here."""


def _handler(proxy: FaultyProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Quiet."""

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            fault, delay_s = proxy.draw()
            if fault == "cut_before":
                self.cut()
            elif fault in ("429", "503"):
                self.refuse(int(fault), "rate_limited" if fault == "429" else "overloaded")
            elif fault == "bad_gateway":
                self.reply(502, {"content-type": "text/html"}, b"<h1>502 Bad Gateway</h1>")
            else:
                time.sleep(delay_s)
                self.forward(body, fault)

        do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

        def forward(self, body: bytes, fault: str) -> None:
            host = urlsplit(proxy.upstream()).netloc
            if not host:
                return self.cut()
            upstream = http.client.HTTPConnection(host, timeout=60)
            dropped = (*HOP_BY_HOP, *(["if-none-match"] if proxy.drops_tags else []))
            headers = {k: v for k, v in self.headers.items() if k.lower() not in dropped}
            try:
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                # The server is away: the other side hears of it.
                return self.cut()
            finally:
                upstream.close()
            if fault == "cut_after":
                return self.cut()
            kept = {k: v for k, v in answer.getheaders() if k.lower() not in HOP_BY_HOP}
            return self.reply(answer.status, kept, content, is_cut=fault == "cut_body")

        def refuse(self, status: int, code: str) -> None:
            problem = {"type": f"/problems/{code}", "status": status, "title": "Refused"}
            content = json.dumps({**problem, "detail": "By the proxy.", "code": code}).encode()
            headers = {"content-type": "application/problem+json", "retry-after": "1"}
            self.reply(status, headers, content)

        def reply(
            self, status: int, headers: dict[str, str], content: bytes, is_cut: bool = False
        ) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status not in (204, 304):
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if is_cut else content)
            if is_cut:
                self.cut()

        def cut(self) -> None:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    return Handler
