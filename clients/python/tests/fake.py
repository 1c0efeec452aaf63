"""A server of scripted answers, and both clients in front of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import httpx

from headmark import Answer, AsyncHeadmark, Call, Headmark, Limits
from tests.virtual import FakeClock

T = TypeVar("T")
Kind = Literal["sync", "async"]
Scripted = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


def problem(
    status: int, code: str, retry_after: str | None = None, **fields: Any
) -> httpx.Response:
    body = {"type": f"/problems/{code}", "title": "Title", "detail": "Why.", **fields}
    headers = {"content-type": "application/problem+json", "x-request-id": "r-1"}
    if retry_after is not None:
        headers["retry-after"] = retry_after
    return httpx.Response(status, json={**body, "status": status, "code": code}, headers=headers)


@dataclass
class Fake:
    """Answers each request with the next of `script`; the last one again and again."""

    kind: Kind
    script: list[Scripted]
    token: Any = None
    limits: Limits = field(default_factory=Limits)
    clock: FakeClock = field(default_factory=FakeClock)
    requests: list[httpx.Request] = field(default_factory=list)

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        scripted = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(scripted, Exception):
            raise scripted
        if callable(scripted):
            return scripted(request)
        # A response can be read once.
        headers = scripted.headers
        return httpx.Response(scripted.status_code, headers=headers, content=scripted.content)

    def send(self, call: Call[T], **options: Any) -> T:
        data: T = self.fetch(call, **options).data  # type: ignore[assignment]
        return data

    def fetch(self, call: Call[T], **options: Any) -> Answer[T | None]:
        transport = httpx.MockTransport(self.handle)
        settings = {
            "token": self.token,
            "limits": self.limits,
            "transport": transport,
            "clock": self.clock,
        }
        if self.kind == "sync":
            with Headmark("http://headmark.test/", **settings) as client:
                return client.fetch(call, **options)

        async def fetch() -> Answer[T | None]:
            async with AsyncHeadmark("http://headmark.test/", **settings) as client:
                return await client.fetch(call, **options)

        return asyncio.run(fetch())

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]
