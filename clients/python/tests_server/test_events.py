"""The events reader and the real server: every event at least once, and in order."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headmark import EventsGap, EventsReader, FileStore, Headmark, routes
from headmark.machines.events import NOBODY
from tests_server.conftest import World, eventually


class Worker:
    """A backend's process that reads events, and crashes now and then."""

    def __init__(self, world: World, path: Path, seed: int) -> None:
        self.world, self.store, self.dice = world, FileStore(path), Random(seed)
        self.seen: list[Any] = []
        self.gaps: list[EventsGap] = []
        self.crashes = 0
        self.is_over = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.is_over:
            with self.world.service() as headmark:
                self._read(headmark)

    def _read(self, headmark: Headmark) -> None:
        reader = EventsReader(headmark, self.store, limit=5, wait_s=1, on_gap=self._gap)
        for event in reader:
            if self.is_over:
                return
            self.seen.append(event)
            if self.dice.random() < 0.1:
                self.crashes += 1
                return

    def _gap(self, gap: EventsGap) -> None:
        self.gaps.append(gap)
        # What it was about is no more.
        self.seen = []

    def stop(self, world: World) -> None:
        self.is_over = True
        post(world, 1, "last")
        self.thread.join()


def post(world: World, count: int, prefix: str) -> None:
    with world.server.client() as service:
        for n in range(count):
            service.send(routes.put_post("7", f"{prefix}-{n}"))


def all_events(world: World) -> list[Any]:
    events: list[Any] = []
    with world.server.client() as service:
        while True:
            page = service.send(routes.list_events(after=len(events), limit=1_000))
            events += page["items"]
            if not page["has_more"]:
                return events


def distinct(worker: Worker) -> list[Any]:
    """In the order in which they first came."""
    return list({event["id"]: event for event in worker.seen}.values())


def has_all(worker: Worker, world: World) -> None:
    assert distinct(worker) == all_events(world)


@pytest.mark.parametrize("seed", [21, 22])
def test_a_worker_that_crashes(world: World, tmp_path: Path, seed: int) -> None:
    world.proxy.badness = 0.3
    worker = Worker(world, tmp_path / "events.json", seed)
    for step in range(10):
        post(world, 4, f"{step}")
        if step == 5:
            world.server.kill()
            time.sleep(0.2)
            world.server.start()
    eventually(lambda: has_all(worker, world))
    assert len(distinct(worker)) == 40
    assert worker.crashes > 0
    assert worker.gaps == []
    world.proxy.badness = 0.0
    worker.stop(world)


@pytest.mark.parametrize("new", [5, 30])
def test_a_restored_server(world: World, tmp_path: Path, new: int) -> None:
    """Whether the numbers were given again or not: the reader begins again."""
    worker = Worker(world, tmp_path / "events.json", 23)
    post(world, 10, "kept")
    world.server.back_up()
    post(world, 20, "lost")
    eventually(lambda: has_all(worker, world))
    before = worker.store.load()
    world.server.restore()
    post(world, new, "new")
    eventually(lambda: has_all(worker, world))
    # It may hear of it again: it may have crashed before the first page after it.
    assert {gap.reason for gap in worker.gaps} == {"restored"}
    assert before
    assert {gap.position["epoch"] for gap in worker.gaps} == {before["epoch"]}
    assert len(distinct(worker)) == 10 + new
    worker.stop(world)


def test_asking_for_the_epoch_makes_no_user(world: World) -> None:
    with world.server.client() as service:
        service.send(routes.send_broadcast("system", title="News"))
        service.send(routes.query_badges(user_ids=[NOBODY], include=["counters"]))
        service.send(routes.send_broadcast("system", title="More news"))
        # A user is enrolled by the first request of its own; what came before is not unread.
        summary = service.send(routes.get_unread_summary(NOBODY))
    assert summary["broadcasts"]["system"]["unread"] == 0
