"""Sends a push with the number of the app icon to users whose numbers an event may have changed.

    python examples/push_sender.py http://127.0.0.1:8080 [--token SECRET] [--position FILE]

It goes on where it was when it ended, and through outages and restores of the server. A user may
get the same number twice: a push that sets a number is harmless when it is repeated.

Events tell of follows, blocks and members. Counters, direct messages and notifications make none.
The service that writes them also sends the push, as `backend.py` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headmark import EventsGap, EventsReader, FileStore, Headmark, routes
from headmark.types import EventOut

Push = Callable[[str, int], None]

# Users in one query.
QUERY_LIMIT = 500
# The field of an event's data that names the user whose numbers it may have changed.
# `HEADMARK_FOLLOWER_BADGE` makes follows count.
CONCERNED = {"relation": "target_id", "member": "user_id"}


def print_push(user: str, total: int) -> None:
    print(f"push to {user}: {total}", flush=True)


def users_of(events: Iterable[EventOut]) -> list[str]:
    """Each user once, however many events there are."""
    users: dict[str, None] = {}
    for event in events:
        data: Any = event["data"]
        field = CONCERNED.get(event["type"])
        if field:
            users[data[field]] = None
    return list(users)


def report(gap: EventsGap) -> None:
    print(
        f"events {gap.reason}: going on with the oldest that is kept", file=sys.stderr, flush=True
    )


def send_pushes(headmark: Headmark, store: FileStore, push: Push = print_push) -> None:
    reader = EventsReader(headmark, store, limit=QUERY_LIMIT, on_gap=report)
    for page in reader.pages():
        users = users_of(page)
        if not users:
            continue
        # The newest numbers, not those of the time of the event. This is never degraded.
        for summary in headmark.send(routes.query_badges(user_ids=users))["items"]:
            push(summary["user_id"], summary["total"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Sends pushes with the number of the app icon.")
    parser.add_argument("server", help="such as http://127.0.0.1:8080")
    parser.add_argument("--token", help="a service key; none if the server runs open")
    parser.add_argument("--position", default="push-sender.json", help="where it keeps its place")
    options = parser.parse_args()
    with Headmark(options.server, token=options.token) as headmark:
        try:
            send_pushes(headmark, FileStore(options.position))
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
