"""Sends a push with the number of the app icon to each user whose numbers have changed.

    python push_sender.py http://127.0.0.1:8080 [--token SECRET] [--position FILE] [--cap 99]

It reads the events of users with a push device, takes each user of a page once, and asks for the
numbers that there are by then. It goes on where it was when it ended, and through outages and
restores of the server. A user may get the same number twice: a push that sets a number is harmless
when it is repeated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headmark import EventsGap, EventsReader, FileStore, Headmark, routes
from headmark.types import EventOut

Push = Callable[[str, str], None]

# Users in one query, and so events in one page.
QUERY_LIMIT = 500


def print_push(user: str, number: str) -> None:
    print(f"push to {user}: {number}", flush=True)


def users_of(events: Iterable[EventOut]) -> list[str]:
    """Each user once, however many events there are."""
    data: list[Any] = [event["data"] for event in events if event["type"] == "unread"]
    return list(dict.fromkeys(of["user_id"] for of in data))


def report(gap: EventsGap) -> None:
    print(
        f"events {gap.reason}: going on with the oldest that is kept", file=sys.stderr, flush=True
    )


def send_pushes(headmark: Headmark, store: FileStore, cap: int, push: Push = print_push) -> None:
    reader = EventsReader(headmark, store, limit=QUERY_LIMIT, types=["unread"], on_gap=report)
    for page in reader.pages():
        users = users_of(page)
        if not users:
            continue
        # The newest numbers, not those of the time of the event. This is never degraded.
        for summary in headmark.send(routes.query_badges(user_ids=users, cap=cap))["items"]:
            more = "+" if summary.get("capped") else ""
            push(summary["user_id"], f"{summary['total']}{more}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Sends pushes with the number of the app icon.")
    parser.add_argument("server", help="such as http://127.0.0.1:8080")
    parser.add_argument("--token", help="a service key; none if the server runs open")
    parser.add_argument("--position", default="push-sender.json", help="where it keeps its place")
    parser.add_argument("--cap", type=int, default=99, help="the highest number of an icon")
    options = parser.parse_args()
    with Headmark(options.server, token=options.token) as headmark:
        try:
            send_pushes(headmark, FileStore(options.position), options.cap)
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
