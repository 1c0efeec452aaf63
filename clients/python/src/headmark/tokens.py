"""The token of a client. Requests whose token was rejected share its renewal.

A request is sent with what the function gave for it, or with what came of the renewal of the same
token. So a function may give each thread or task the token of a user of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from .visible import bearer

# A token, or a function that returns one. After a 401 it is called again, and where it gives the
# same token, with True: get a new one. What an async one awaits is a part of the time of an
# attempt. A call of another one cannot be ended: it must return soon, so its own requests need a
# time limit.
Token = str | Callable[[bool], str]
AsyncToken = str | Callable[[bool], "str | Awaitable[str]"]

# So many renewals are remembered, for requests that are rejected late.
MAX_REMEMBERED = 32


@dataclass(frozen=True)
class Used:
    """What an attempt is sent with."""

    header: str = field(repr=False)
    # How many renewals there had been when the function was asked.
    renewals: int = 0
    # It came of a renewal for this request.
    is_renewed: bool = False


# Of a renewal, for all that wait for it. None: it was given up, and the next one renews.
Outcome = Used | Exception | None


class Source(Protocol):
    """Tokens for the attempts of an async client. None: it has none."""

    can_renew: bool

    async def get(self, rejected: Used | None) -> Used | None: ...


class _Tokens:
    """What is known of renewals."""

    def __init__(self, token: Any) -> None:
        self._function = token if callable(token) else None
        self._fixed = Used(bearer(token)) if isinstance(token, str) else None
        self.can_renew = self._function is not None
        self._renewals = 0
        # The rejected header, and the result of its renewal.
        self._renewed: deque[tuple[str, Used]] = deque(maxlen=MAX_REMEMBERED)

    def _renewed_meanwhile(self, rejected: Used) -> Used | None:
        """By another request that had the same token."""
        for header, renewed in reversed(tuple(self._renewed)):
            if header == rejected.header and renewed.renewals > rejected.renewals:
                return Used(renewed.header, renewed.renewals)
        return None

    def _remember(self, rejected: Used, token: str) -> Used:
        renewed = Used(bearer(token), self._renewals + 1, is_renewed=True)
        self._renewed.append((rejected.header, renewed))
        self._renewals = renewed.renewals
        return renewed


class Tokens(_Tokens):
    """For threads."""

    def __init__(self, token: Token | None) -> None:
        super().__init__(token)
        # By the process, too: what ran at a fork does not run in the child. There is no lock, which
        # could be held at a fork.
        self._running: dict[tuple[int, str], Future[Outcome]] = {}

    def get(self, rejected: Used | None = None) -> Used | None:
        """With `rejected`: one to send the request again with."""
        if self._function is None:
            return self._fixed
        # The function may have another one by now.
        given = self._ask()
        if rejected is None or given.header != rejected.header:
            return given
        outcome: Outcome = None
        while outcome is None:
            own: Future[Outcome] = Future()
            running = self._running.setdefault((os.getpid(), rejected.header), own)
            if running is own:
                return self._renew(rejected, own)
            outcome = running.result()
        return taken(outcome)

    def _ask(self) -> Used:
        assert self._function is not None
        # Counted before: a renewal that ends while the function runs is later than its token.
        renewals = self._renewals
        return Used(bearer(self._function(False)), renewals)

    def _renew(self, rejected: Used, own: Future[Outcome]) -> Used:
        assert self._function is not None
        outcome: Outcome = None
        try:
            meanwhile = self._renewed_meanwhile(rejected)
            renewed = meanwhile or self._remember(rejected, self._function(True))
            outcome = renewed
            return renewed
        except Exception as error:
            outcome = error
            raise
        finally:
            del self._running[os.getpid(), rejected.header]
            own.set_result(outcome)


class AsyncTokens(_Tokens):
    """For one event loop. The request that renews may give up: then the next one renews."""

    def __init__(self, token: AsyncToken | None) -> None:
        super().__init__(token)
        self._running: dict[str, asyncio.Future[Outcome]] = {}

    async def get(self, rejected: Used | None) -> Used | None:
        if self._function is None:
            return self._fixed
        given = await self._ask()
        if rejected is None or given.header != rejected.header:
            return given
        outcome: Outcome = None
        while outcome is None:
            running = self._running.get(rejected.header)
            if running is None:
                return await self._renew(rejected)
            # Not the future itself: it is not cancelled with one that waits for it.
            await asyncio.wait([running])
            outcome = running.result()
        return taken(outcome)

    async def _ask(self) -> Used:
        renewals = self._renewals
        return Used(bearer(await self._call(False)), renewals)

    async def _renew(self, rejected: Used) -> Used:
        meanwhile = self._renewed_meanwhile(rejected)
        if meanwhile:
            return meanwhile
        own: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._running[rejected.header] = own
        outcome: Outcome = None
        try:
            renewed = self._remember(rejected, await self._call(True))
            outcome = renewed
            return renewed
        except Exception as error:
            outcome = error
            raise
        finally:
            del self._running[rejected.header]
            own.set_result(outcome)

    async def _call(self, is_rejected: bool) -> str:
        assert self._function is not None
        token: str | Awaitable[str] = self._function(is_rejected)
        return token if isinstance(token, str) else await token


def taken(outcome: Used | Exception) -> Used:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
