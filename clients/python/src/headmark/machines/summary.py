"""Unread summaries: what a degraded one leaves out, what a reset on its way will clear."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol, cast

from typing_extensions import NotRequired, TypedDict

from ..types import UnreadSummaryOut

# The kinds of badges that have a head, so that a reset can say what the user saw.
ResetKind = Literal["counters", "broadcasts", "dots"]
KINDS = ("counters", "broadcasts", "dots", "feed", "chats", "notifications", "views")

# The fields are looked up by name here, which a TypedDict does not allow.
Fields = dict[str, Any]


class ResetBody(TypedDict):
    """The answer to a reset, of any of the three kinds."""

    head: int
    revision: int
    unread: NotRequired[int]
    lit: NotRequired[bool]


class PendingReset(Protocol):
    @property
    def kind(self) -> ResetKind: ...
    @property
    def name(self) -> str: ...
    @property
    def up_to(self) -> int: ...


def keep_missing(known: UnreadSummaryOut, answer: UnreadSummaryOut) -> UnreadSummaryOut:
    """A degraded answer, with the last known parts where it has none."""
    before = cast(Fields, known)
    kept: Fields = {**answer}
    names = [*KINDS, "revision", "shared_revision"]
    if "total" not in kept:
        names += ["total", "capped"]
    for name in names:
        if name not in kept and name in before:
            kept[name] = before[name]
    return cast(UnreadSummaryOut, kept)


def head_of(summary: UnreadSummaryOut | None, kind: ResetKind, name: str) -> int | None:
    """The head that was shown; a reset without `up_to` means this one."""
    entry = cast(Fields, summary or {}).get(kind, {}).get(name)
    return None if entry is None else int(entry["head"])


def with_resets(known: UnreadSummaryOut, resets: Iterable[PendingReset]) -> UnreadSummaryOut:
    """What the user is shown while resets are on their way: what they will clear is gone."""
    shown = known
    for reset in resets:
        entry: Fields | None = cast(Fields, known).get(reset.kind, {}).get(reset.name)
        if entry is None:
            continue
        cleared = _cleared_dot if reset.kind == "dots" else _cleared_counter
        shown = _with_entry(shown, reset.kind, reset.name, cleared(entry, reset.up_to))
    return shown


def with_answer(
    known: UnreadSummaryOut, reset: PendingReset, body: ResetBody, cap: int | None
) -> UnreadSummaryOut:
    """What the answer to a reset says of its badge."""
    if reset.kind not in known:
        return known
    if reset.kind == "dots":
        dot: Fields = {"lit": body.get("lit", False), "head": body["head"]}
        return _with_entry(known, reset.kind, reset.name, dot)
    unread = body.get("unread", 0)
    entry: Fields = {"unread": unread if cap is None else min(unread, cap), "head": body["head"]}
    if cap is not None:
        entry["capped"] = unread > cap
    return _with_entry(known, reset.kind, reset.name, entry)


def _cleared_dot(dot: Fields, up_to: int) -> Fields:
    return {**dot, "lit": dot["lit"] and dot["head"] > up_to}


def _cleared_counter(counter: Fields, up_to: int) -> Fields:
    """Nothing up to `up_to` counts as unread."""
    after = max(0, counter["head"] - up_to)
    if after >= counter["unread"]:
        return counter
    cleared = {**counter, "unread": after}
    if "capped" in counter:
        cleared["capped"] = False
    return cleared


def _with_entry(
    summary: UnreadSummaryOut, kind: ResetKind, name: str, entry: Fields
) -> UnreadSummaryOut:
    before = cast(Fields, summary)
    entries: Fields = before.get(kind, {})
    changed: Fields = {**before, kind: {**entries, name: entry}}
    if kind != "dots" and _is_sum_of_all(before):
        changed["total"] += entry["unread"] - entries.get(name, {}).get("unread", 0)
    return cast(UnreadSummaryOut, changed)


def _is_sum_of_all(summary: Fields) -> bool:
    """Whether the total is the plain sum of its kinds. Where it is not (a cap, or settings that
    leave something out), only the server can say what it becomes."""
    kinds = ("counters", "broadcasts", "notifications")
    if "total" not in summary or any(kind not in summary for kind in (*kinds, "chats")):
        return False
    parts = [part for kind in kinds for part in summary[kind].values()] + [summary["chats"]]
    is_capped = any(part.get("capped") for part in parts)
    return not is_capped and sum(part["unread"] for part in parts) == summary["total"]
