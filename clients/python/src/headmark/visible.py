"""What the caller puts into headers. HTTP would refuse or change other characters, and the texts of
its errors may hold a secret."""

from __future__ import annotations

import re


def is_visible(value: str) -> bool:
    return re.fullmatch(r"[!-~]+", value) is not None


def visible(what: str, value: str) -> str:
    """`value`, if it may be sent. The error says what it is of, and nothing of it."""
    if not is_visible(value):
        raise ValueError(f"{what} must be visible ASCII characters, at least one")
    return value


def bearer(token: str) -> str:
    """The header. A file that has a token often ends with a newline, which is no part of it."""
    return f"Bearer {visible('the token', token.strip())}"
