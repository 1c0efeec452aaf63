"""The inbox reader and the real server: every row once, in order, whatever happens in between."""

from __future__ import annotations

import threading
import time
from random import Random
from typing import Any

import pytest

from headmark import InboxPosition, InboxReader, routes
from tests_server.conftest import World, eventually

USER = "42"


class Phone:
    """What its database has survives the app."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.dice = world, Random(seed)
        self.rows: list[Any] = []
        self.position: InboxPosition | None = None
        self.resets = 0
        self.run = 0
        self.reader: InboxReader | None = None
        self.lock = threading.Lock()

    def launch(self) -> None:
        """The system ended the app before: what it was doing has no effect any more."""
        with self.lock:
            self.run += 1
            run = self.run
        if self.reader:
            self.reader.stop()

        def on_items(items: list[Any], position: InboxPosition) -> None:
            time.sleep(self.dice.random() / 100)
            with self.lock:
                if run != self.run:
                    raise InterruptedError("killed")
                self.rows, self.position = [*self.rows, *items], position

        def on_reset() -> None:
            with self.lock:
                self.rows, self.position, self.resets = [], None, self.resets + 1

        self.reader = InboxReader(
            self.world.user(USER),
            position=self.position,
            on_items=on_items,
            on_reset=on_reset,
            device="phone",
            limit=7,
            wait_s=1,
            timeout_s=1.0,
            cursor_gap_s=1.0,
        )
        self.reader.start()


def send_messages(world: World, count: int, prefix: str) -> None:
    with world.server.client() as service:
        for n in range(count):
            call = routes.send_direct(
                USER, sender_id=7, client_id=f"{prefix}-{n}", content=f"{prefix} {n}"
            )
            service.send(call)


def all_rows(world: World) -> list[Any]:
    rows: list[Any] = []
    with world.server.client() as service:
        while True:
            page = service.send(routes.get_inbox(USER, after=len(rows), limit=100))
            rows += page["items"]
            if not page["has_more"]:
                return rows


@pytest.mark.parametrize("seed", [11, 12])
def test_messages_to_an_app_that_is_killed(world: World, seed: int) -> None:
    phone, dice = Phone(world, seed), Random(seed)
    world.proxy.badness = 0.4
    phone.launch()
    for step in range(15):
        send_messages(world, dice.randrange(1, 10), f"{step}")
        if dice.random() < 0.3:
            phone.launch()
        if step == 7:
            world.server.kill()
            world.server.start()
        time.sleep(dice.random() * 0.1)
    world.proxy.badness = 0.0
    rows = all_rows(world)
    assert len(rows) > 40

    def has_all() -> None:
        assert phone.rows == rows
        with world.server.client() as service:
            (device,) = service.send(routes.list_devices(USER))["items"]
        assert device["cursor"] == len(rows)

    eventually(has_all)
    assert phone.resets == 0
    assert phone.reader
    phone.reader.stop()


def test_a_restored_server(world: World) -> None:
    phone = Phone(world, 14)
    phone.launch()
    send_messages(world, 20, "kept")
    world.server.back_up()
    send_messages(world, 20, "lost")
    eventually(lambda: has(phone, 40))
    world.server.restore()
    world.proxy.badness = 0.3
    # More rows than were lost: only the epoch tells that these are others.
    send_messages(world, 25, "new")
    eventually(lambda: has(phone, 45))
    assert phone.rows == all_rows(world)
    assert phone.rows[20]["content"] == "new 0"
    assert phone.resets == 1
    assert phone.reader
    phone.reader.stop()


def has(phone: Phone, count: int) -> None:
    assert len(phone.rows) == count
