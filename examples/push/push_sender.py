"""Sends a push with the number of the app icon to each user whose numbers have changed.

    python push_sender.py http://127.0.0.1:8080 [--token SECRET] [--position FILE] [--cap 99]

It reads the events of users with a push device, takes each user of a page once, and asks for the
numbers that there are by then. It goes on where it was when it ended, and through outages and
restores of the server. Users who were erased get no push. A user may get the same number again. It
is not left out: the device may be new, or its app may have changed the icon by itself.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headmark import (
    EventsGap,
    EventsReader,
    FileStore,
    Headmark,
    Limits,
    PositionStore,
    ProblemError,
    routes,
)
from headmark.types import EventOut, UnreadSummaryOut

# The user, the number, and whether the true one is higher. APNs takes the number alone.
Push = Callable[[str, int, bool], None]

# Users in one query, and so events in one page.
QUERY_LIMIT = 500
# The reader goes through outages by itself. With these limits the client does so, too: it repeats
# the query, with growing pauses, until the server is back.
PATIENT = Limits(retries=sys.maxsize, total_s=math.inf)


def print_push(user: str, total: int, capped: bool) -> None:
    print(f"push to {user}: {total}{'+' if capped else ''}", flush=True)


def users_of(events: Iterable[EventOut]) -> list[str]:
    """Each user once, however many events there are."""
    data: list[Any] = [event["data"] for event in events if event["type"] == "unread"]
    return list(dict.fromkeys(of["user_id"] for of in data))


def report(gap: EventsGap) -> None:
    print(
        f"events {gap.reason}: going on with the oldest that is kept", file=sys.stderr, flush=True
    )


def summaries_of(headmark: Headmark, users: list[str], cap: int) -> list[UnreadSummaryOut]:
    """The newest numbers, not those of the time of the event. They are never degraded."""
    while users:
        try:
            return headmark.send(routes.query_badges(user_ids=users, cap=cap))["items"]
        except ProblemError as error:
            if error.code != "erased":
                raise
            # One who was erased after the event fails the whole query. Ask again for the others.
            erased = {where["pointer"] for where in error.where}
            others = [user for at, user in enumerate(users) if f"/user_ids/{at}" not in erased]
            if others == users:
                raise
            users = others
    return []


def send_pushes(
    headmark: Headmark, store: PositionStore, cap: int, push: Push = print_push
) -> None:
    """Reads for ever. With a `headmark` of other limits than `PATIENT`, an outage may end it."""
    reader = EventsReader(headmark, store, limit=QUERY_LIMIT, types=["unread"], on_gap=report)
    for page in reader.pages():
        for summary in summaries_of(headmark, users_of(page), cap):
            push(summary["user_id"], summary["total"], summary.get("capped", False))


def main() -> None:
    parser = argparse.ArgumentParser(description="Sends pushes with the number of the app icon.")
    parser.add_argument("server", help="such as http://127.0.0.1:8080")
    parser.add_argument("--token", help="a service key; none if the server runs open")
    parser.add_argument("--position", default="push-sender.json", help="where it keeps its place")
    parser.add_argument("--cap", type=int, default=99, help="the highest number of an icon")
    options = parser.parse_args()
    with Headmark(options.server, token=options.token, limits=PATIENT) as headmark:
        try:
            send_pushes(headmark, FileStore(options.position), options.cap)
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
