"""Runs a state machine in an event loop: one event at a time, and its effects in order. What an
effect starts has an id, by which it can be cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from typing_extensions import Self

from .call import Answer
from .clock import Clock
from .errors import HeadmarkError, ProblemError
from .machines.loop import AnswerFields, LoopState, Signal, Sleep

logger = logging.getLogger("headmark")

State = TypeVar("State", bound=LoopState)
Event = TypeVar("Event")
# Not a coroutine yet: one that is cancelled before it begins would never be awaited.
Work = Callable[[], Awaitable[Any]]
Step = Callable[[State, Any, int], "tuple[State, list[Any]]"]


class Perform(Protocol):
    """Performs an effect other than `sleep` and `cancel`."""

    def __call__(self, effect: Any) -> None: ...


@dataclass(frozen=True)
class Running:
    task: asyncio.Task[None]
    # The type of the event that tells the machine that there is no outcome.
    lost: str


class Runner(Generic[State]):
    def __init__(self, state: State, step: Step[State], perform: Perform, clock: Clock) -> None:
        self.state = state
        self._step = step
        self._perform = perform
        self._clock = clock
        self._events: deque[Any] = deque()
        self._running: dict[int, Running] = {}
        self._cancelled: set[asyncio.Task[None]] = set()
        self._is_stepping = False

    def send(self, event: Any) -> None:
        """A callback may send the next event: it waits until the step is over."""
        self._events.append(event)
        if self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self._events:
                now = round(self._clock.now() * 1_000)
                self.state, effects = self._step(self.state, self._events.popleft(), now)
                for effect in effects:
                    self._start_effect(effect)
        finally:
            self._is_stepping = False

    def start(self, id: int, work: Work, *, lost: str = "failed") -> None:
        """Starts what can be cancelled by its id, and sends the event that it ends with."""
        self._running[id] = Running(new_task(self._end(id, work, lost)), lost)

    async def settle(self, timeout_s: float) -> None:
        """Waits for what a stop does not cancel: resets, the app's transaction, and the cursor
        after it, each for so long at most. A callback of the app may call this: it does not wait
        for itself."""
        own = asyncio.current_task()
        while running := {id: it for id, it in self._running.items() if it.task is not own}:
            await asyncio.wait([it.task for it in running.values()], timeout=timeout_s)
            for id, it in running.items():
                # Otherwise the machine would wait for it after the next start.
                if self._cancel(id):
                    self.send({"type": it.lost, "id": id})
            if self.state.running:
                # It was started again meanwhile.
                break
        # A cancelled request has its connection until it has ended.
        if self._cancelled - {own}:
            await asyncio.wait(self._cancelled - {own}, timeout=timeout_s)

    def _start_effect(self, effect: Any) -> None:
        if effect["type"] == "sleep":
            self.start(effect["id"], partial(self._sleep, effect))
        elif effect["type"] == "cancel":
            self._cancel(effect["id"])
        else:
            self._perform(effect)

    def _cancel(self, id: int) -> bool:
        it = self._running.pop(id, None)
        if it and not it.task.done():
            it.task.cancel()
            self._cancelled.add(it.task)
            it.task.add_done_callback(self._cancelled.discard)
        return it is not None

    async def _sleep(self, effect: Sleep) -> Any:
        ms = effect["ms"] + self._clock.random() * effect["jitter_ms"]
        await self._clock.sleep_async(ms / 1_000)
        return {"type": "woke", "id": effect["id"]}

    async def _end(self, id: int, work: Work, lost: str) -> None:
        try:
            event = await work()
        except asyncio.CancelledError:
            if id not in self._running or is_being_cancelled():
                raise
            logger.exception("a function of the app was cancelled; it is called again")
            event = {"type": lost, "id": id}
        # Only now is it over: a cancelled one sends nothing.
        if self._running.pop(id, None):
            self.send(event)


class Looping(Generic[State]):
    """What runs from `start` to `stop`, as an asynchronous context manager or by hand."""

    def __init__(self, runner: Runner[State], timeout_s: float) -> None:
        self._runner = runner
        self._timeout_s = timeout_s

    def start(self) -> None:
        self._runner.send({"type": "start"})

    async def stop(self) -> None:
        """Returns when what is on its way is answered or stored, or its time is over."""
        self._runner.send({"type": "stop"})
        await self._runner.settle(self._timeout_s)

    def refresh(self) -> None:
        """Asks now: after a write of your own, or with a new token after `failed`."""
        self._runner.send({"type": "refresh"})

    def signal(self, signal: Signal) -> None:
        """Pauses while `hidden` or `offline`, until `visible` and `online`."""
        self._runner.send({"type": signal})

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


class CountingTask(asyncio.Task[None]):
    """Counts its cancellations, as every task does from Python 3.11 on. It cannot take back those
    of a timeout in a function of the app."""

    _cancellations = 0

    def cancel(self, msg: Any | None = None) -> bool:
        self._cancellations += 1
        return super().cancel(msg)

    def cancelling(self) -> int:
        return self._cancellations


def new_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """One that `is_being_cancelled` can ask. It does not begin before the caller knows of it: an
    app may have the loop begin tasks at once (`asyncio.eager_task_factory`)."""
    return asyncio.Task(work) if hasattr(asyncio.Task, "cancelling") else CountingTask(work)


def is_being_cancelled() -> bool:
    """The current task itself, such as at the end of the loop, and not only what it awaits."""
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is not None and cancelling() > 0


async def ended(request: Callable[[Any], Awaitable[Any]], effect: Any, type: str) -> Any:
    """The event that a request ends with."""
    id = effect["id"]
    try:
        return await request(effect)
    except ProblemError as error:
        return {"type": type, "id": id, **refusal_of(error)}
    except HeadmarkError:
        return {"type": "failed", "id": id}
    except Exception:
        # The function that returns the token failed, or the machine asked for what cannot be sent.
        logger.exception("a request could not be sent; it is tried again")
        return {"type": "failed", "id": id}


def looks_like(body: Any, **fields: type) -> bool:
    """Of the route, and not the JSON of something else."""
    # A bool is an int, too, so no `isinstance`.
    return isinstance(body, dict) and all(
        type(body.get(name)) is expected for name, expected in fields.items()
    )


def answer_of(answer: Answer[Any], id: int) -> AnswerFields:
    """What a machine sees of a success."""
    event: AnswerFields = {"id": id, "status": answer.status}
    if answer.poll_interval_s is not None:
        event["poll_interval_s"] = answer.poll_interval_s
    if answer.retry_after_s is not None:
        event["retry_after_s"] = answer.retry_after_s
    return event


def refusal_of(error: ProblemError) -> dict[str, Any]:
    """What a machine sees of an error."""
    event: dict[str, Any] = {"status": error.status}
    if error.code is not None:
        event["code"] = error.code
    if error.retry_after_s is not None:
        event["retry_after_s"] = error.retry_after_s
    if error.problem and isinstance(error.problem.get("earliest_seq"), int):
        event["earliest_seq"] = error.problem["earliest_seq"]
    return event


def call_safely(callback: Callable[..., object], *arguments: object) -> None:
    """An app's callback that fails must not end the loop."""
    try:
        callback(*arguments)
    except (KeyboardInterrupt, SystemExit):
        # The program is to end, as after every callback of asyncio that raises them.
        raise
    except BaseException:
        # Also a CancelledError: nothing else can have cancelled what does not wait.
        logger.exception("a callback failed")
