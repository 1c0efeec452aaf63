"""The token of a client. Requests whose token was rejected share its renewal.

A request is sent with what the function gave for it, or with what came of the renewal of the same
token. So a function may give each thread or task the token of a user of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .visible import bearer

# A token, or a function that returns one. After a 401 it is called again, and where it gives the
# same token, with True: get a new one. What an async one awaits is a part of the time of an
# attempt. A call of another one cannot be ended: it must return soon, so its own requests need a
# time limit.
Token = str | Callable[[bool], str]
AsyncToken = str | Callable[[bool], "str | Awaitable[str]"]


@dataclass(frozen=True)
class Used:
    """What an attempt is sent with."""

    header: str = field(repr=False)
    # How many renewals there had been when the function was asked.
    renewals: int = 0
    # It came of a renewal for this request.
    is_renewed: bool = False


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
        # The headers before and after the last one.
        self._last = ("", "")

    def _renewed_meanwhile(self, rejected: Used) -> Used | None:
        """By another request that had the same token."""
        before, after = self._last
        is_meanwhile = self._renewals > rejected.renewals and before == rejected.header
        return Used(after, self._renewals) if is_meanwhile else None

    def _renewed(self, rejected: Used, token: str) -> Used:
        self._last = (rejected.header, bearer(token))
        self._renewals += 1
        return Used(self._last[1], self._renewals, is_renewed=True)


class Tokens(_Tokens):
    """For threads."""

    def __init__(self, token: Token | None) -> None:
        super().__init__(token)
        self._renewing = threading.Lock()

    def get(self, rejected: Used | None = None) -> Used | None:
        """With `rejected`: one to send the request again with."""
        if self._function is None:
            return self._fixed
        if rejected is None:
            return self._ask()
        with self._renewing:
            renewed = self._renewed_meanwhile(rejected)
            if renewed:
                return renewed
            # The function may have another one by now.
            given = self._ask()
            if given.header != rejected.header:
                return given
            return self._renewed(rejected, self._function(True))

    def _ask(self) -> Used:
        assert self._function is not None
        # Counted before: a renewal that ends while the function runs is later than its token.
        renewals = self._renewals
        return Used(bearer(self._function(False)), renewals)


class AsyncTokens(_Tokens):
    """For one event loop. The request that renews may give up: then the next one renews."""

    def __init__(self, token: AsyncToken | None) -> None:
        super().__init__(token)
        self._renewing = asyncio.Lock()

    async def get(self, rejected: Used | None) -> Used | None:
        if self._function is None:
            return self._fixed
        if rejected is None:
            return await self._ask()
        async with self._renewing:
            renewed = self._renewed_meanwhile(rejected)
            if renewed:
                return renewed
            given = await self._ask()
            if given.header != rejected.header:
                return given
            return self._renewed(rejected, await self._call(True))

    async def _ask(self) -> Used:
        renewals = self._renewals
        return Used(bearer(await self._call(False)), renewals)

    async def _call(self, is_rejected: bool) -> str:
        assert self._function is not None
        token: str | Awaitable[str] = self._function(is_rejected)
        return token if isinstance(token, str) else await token
