"""The sync and the async client. Both perform what `exchange` decides."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, TypeVar

import httpx

from .call import Answer, Call
from .clock import Clock, SystemClock
from .errors import NoAnswerError
from .exchange import Attempt, Limits, Pause, Reply, Steps, exchange
from .token_thread import TokenThread
from .tokens import AsyncToken, AsyncTokens, Source, Token, Tokens, Used
from .within import TooLateError, within

T = TypeVar("T")
Self = TypeVar("Self")

# The time to connect is a part of the time of an attempt.
CONNECT_TIMEOUT_S = 5.0
# A client with more connections closes those that become idle. The pool of httpx takes longer to
# choose among many idle ones, when many polls end at once, than new connections take.
MAX_KEPT_CONNECTIONS = 20


def user_agent(package: str = "headmark") -> str:
    """With the version that is installed. A source tree on the path has none."""
    try:
        return f"headmark-python/{version(package)}"
    except PackageNotFoundError:
        return "headmark-python"


USER_AGENT = user_agent()


class _Client:
    """What both clients keep."""

    _tokens: Tokens | Source

    def __init__(self, base_url: str, limits: Limits, clock: Clock) -> None:
        self.base_url = base_url.rstrip("/")
        self.limits = limits
        self.clock = clock

    def _steps(
        self, call: Call[T], tag: str | None, timeout_s: float | None, retries: int | None
    ) -> Steps[T]:
        limits = self.limits
        if timeout_s is not None:
            limits = replace(limits, timeout_s=timeout_s)
        if retries is not None:
            limits = replace(limits, retries=retries)
        return exchange(call, limits, self.clock, tag=tag, can_renew=self._tokens.can_renew)

    def _request(self, call: Call[Any], attempt: Attempt, used: Used | None) -> dict[str, Any]:
        headers = {"user-agent": USER_AGENT, **attempt.headers}
        if used is not None:
            headers["authorization"] = used.header
        connect_s = min(CONNECT_TIMEOUT_S, attempt.timeout_s)
        return {
            "method": call.method,
            "url": self.base_url + call.url_path,
            "params": call.params,
            "json": call.json,
            "headers": headers,
            "timeout": httpx.Timeout(attempt.timeout_s, connect=connect_s, pool=connect_s),
        }


def _connections(limits: Limits) -> httpx.Limits:
    return httpx.Limits(
        max_connections=limits.max_connections, max_keepalive_connections=MAX_KEPT_CONNECTIONS
    )


def _no_answer(call: Call[Any], error: httpx.RequestError) -> NoAnswerError:
    # The text of a local one may hold a header, and so the token.
    is_local = isinstance(error, httpx.LocalProtocolError)
    detail = ("" if is_local else str(error)) or type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return NoAnswerError(call.name, "not_sent", detail)
    is_late = isinstance(error, httpx.TimeoutException)
    return NoAnswerError(call.name, "timeout" if is_late else "network", detail)


def _reply(response: httpx.Response, body: bytes, used: Used | None) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, body, used)


class Headmark(_Client):
    """A client for threads: they may share one. Close it, or use it as a context manager.

    Until the headers of an answer have come, its time limit is for each part that is received, as
    httpx has no other: headers that drip may take longer. `AsyncHeadmark` bounds all of it.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: Token | None = None,
        limits: Limits | None = None,
        verify: ssl.SSLContext | bool = True,
        transport: httpx.BaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`base_url` is without `/v1`. `verify` and `transport` are those of httpx. A `transport`
        bounds its connections itself."""
        super().__init__(base_url, limits or Limits(), clock or SystemClock())
        self._tokens: Tokens = Tokens(token)
        self._verify, self._transport = verify, transport
        self._https = {os.getpid(): self._connect()}

    def send(
        self, call: Call[T], *, timeout_s: float | None = None, retries: int | None = None
    ) -> T:
        """Sends a call of `headmark.routes` and returns the body of the answer.

        Raises `ProblemError` when the server refuses, `NoAnswerError` when no usable answer comes,
        and `ValueError` for what cannot be sent, such as a token with a space in it.
        """
        return self._run(call, self._steps(call, None, timeout_s, retries)).data

    def fetch(
        self,
        call: Call[T],
        *,
        tag: str | None = None,
        timeout_s: float | None = None,
        retries: int | None = None,
    ) -> Answer[T | None]:
        """As `send`, with the headers. `tag` is the `etag` of an earlier answer: where nothing
        changed since, the status is 304 and there is no data."""
        answer: Answer[Any] = self._run(call, self._steps(call, tag, timeout_s, retries))
        return answer

    def _run(self, call: Call[T], steps: Steps[T]) -> Answer[T]:
        outcome: Reply | NoAnswerError | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                answer: Answer[T] = end.value
                return answer
            if isinstance(step, Pause):
                self.clock.sleep(step.seconds)
                outcome = None
            else:
                outcome = self._attempt(call, step)

    def _attempt(self, call: Call[Any], attempt: Attempt) -> Reply | NoAnswerError:
        used = self._tokens.get(attempt.rejected)
        deadline = self.clock.now() + attempt.timeout_s
        try:
            with self._http.stream(**self._request(call, attempt, used)) as response:
                body = bytearray()
                # The limits of httpx are for each read: a body that drips has to end, too.
                for chunk in response.iter_bytes():
                    body += chunk
                    if self.clock.now() > deadline:
                        return NoAnswerError(call.name, "timeout", "the body took too long")
                return _reply(response, bytes(body), used)
        except httpx.RequestError as error:
            return _no_answer(call, error)

    @property
    def _http(self) -> httpx.Client:
        """Of this process: the child of a fork must not use the connections of its parent."""
        pid = os.getpid()
        return self._https.get(pid) or self._https.setdefault(pid, self._connect())

    def _connect(self) -> httpx.Client:
        return httpx.Client(
            verify=self._verify, transport=self._transport, limits=_connections(self.limits)
        )

    def to_async(self) -> AsyncHeadmark:
        """A client with the same settings for an event loop of the poller and the inbox reader."""
        transport = self._transport
        if transport is not None and not isinstance(transport, httpx.AsyncBaseTransport):
            raise TypeError("the transport is not an httpx.AsyncBaseTransport, too")
        client = AsyncHeadmark(
            self.base_url,
            limits=self.limits,
            verify=self._verify,
            transport=transport,
            clock=self.clock,
        )
        # Of this client, so that they share renewals.
        client._tokens = TokenThread(self._tokens)
        return client

    def close(self) -> None:
        self._http.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncHeadmark(_Client):
    """A client for asyncio. Close it, or use it as a context manager."""

    def __init__(
        self,
        base_url: str,
        *,
        token: AsyncToken | None = None,
        limits: Limits | None = None,
        verify: ssl.SSLContext | bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`base_url` is without `/v1`. `verify` and `transport` are those of httpx. A `transport`
        bounds its connections itself."""
        super().__init__(base_url, limits or Limits(), clock or SystemClock())
        self._tokens: Source = AsyncTokens(token)
        self._http = httpx.AsyncClient(
            verify=verify, transport=transport, limits=_connections(self.limits)
        )

    async def send(
        self, call: Call[T], *, timeout_s: float | None = None, retries: int | None = None
    ) -> T:
        """As `Headmark.send`."""
        return (await self._run(call, self._steps(call, None, timeout_s, retries))).data

    async def fetch(
        self,
        call: Call[T],
        *,
        tag: str | None = None,
        timeout_s: float | None = None,
        retries: int | None = None,
    ) -> Answer[T | None]:
        """As `Headmark.fetch`."""
        answer: Answer[Any] = await self._run(call, self._steps(call, tag, timeout_s, retries))
        return answer

    async def _run(self, call: Call[T], steps: Steps[T]) -> Answer[T]:
        outcome: Reply | NoAnswerError | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                answer: Answer[T] = end.value
                return answer
            if isinstance(step, Pause):
                await self.clock.sleep_async(step.seconds)
                outcome = None
            else:
                outcome = await self._attempt(call, step)

    async def _attempt(self, call: Call[Any], attempt: Attempt) -> Reply | NoAnswerError:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + attempt.timeout_s
        try:
            getting = self._tokens.get(attempt.rejected)
            # A function may hang.
            is_fixed = not self._tokens.can_renew
            used = await getting if is_fixed else await within(attempt.timeout_s, getting)
        except TooLateError:
            return NoAnswerError(call.name, "not_sent", "the token did not come in time")
        receiving = self._receive(self._request(call, attempt, used), used)
        try:
            return await within(deadline - loop.time(), receiving)
        except TooLateError:
            return NoAnswerError(call.name, "timeout", "the answer did not come in time")
        except httpx.RequestError as error:
            return _no_answer(call, error)

    async def _receive(self, request: dict[str, Any], used: Used | None) -> Reply:
        async with self._http.stream(**request) as response:
            return _reply(response, await response.aread(), used)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
