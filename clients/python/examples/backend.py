"""A backend of a site with comments. It counts each comment once, however often it tries, and
pushes the number of the app icon.

    python examples/backend.py http://127.0.0.1:8080 [--token SECRET]
"""

from __future__ import annotations

import argparse

from headmark import Headmark, routes


def comment_posted(headmark: Headmark, comment: int, author: str, owner: str) -> int:
    """The position of the comment: store it with the comment."""
    if author == owner:
        return 0
    # The key says what happened. A job that runs again after a crash counts nothing twice.
    call = routes.increment_badge(owner, "comment", idempotency_key=f"comment-{comment}-{owner}")
    head = headmark.send(call)["head"]
    push(headmark, owner)
    return head


def comment_deleted(headmark: Headmark, comment: int, owner: str, head: int) -> None:
    """The number falls only if the comment was unread."""
    key = f"comment-{comment}-{owner}-deleted"
    headmark.send(routes.retract_badge(owner, "comment", at=head, idempotency_key=key))
    push(headmark, owner)


def push(headmark: Headmark, user: str) -> None:
    (summary,) = headmark.send(routes.query_badges(user_ids=[user]))["items"]
    print(f"push to {user}: {summary['total']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts comments and pushes the number.")
    parser.add_argument("server", help="such as http://127.0.0.1:8080")
    parser.add_argument("--token", help="a service key; none if the server runs open")
    parser.add_argument("--owner", default="42", help="whose post is commented on")
    options = parser.parse_args()
    with Headmark(options.server, token=options.token) as headmark:
        head = comment_posted(headmark, 501, author="7", owner=options.owner)
        # The job runs again: it crashed before it could say that it was done.
        head = comment_posted(headmark, 501, author="7", owner=options.owner)
        comment_posted(headmark, 502, author="8", owner=options.owner)
        comment_deleted(headmark, 501, owner=options.owner, head=head)


if __name__ == "__main__":
    main()
