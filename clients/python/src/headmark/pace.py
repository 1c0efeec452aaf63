"""How long to wait before the next request: shared by requests and by the state machines."""

from __future__ import annotations

# No machine sends two polls within this time.
MIN_GAP_MS = 1_000
# The pace until the server names one.
DEFAULT_INTERVAL_MS = 30_000
BACKOFF_MS = 1_000
BACKOFF_MAX_MS = 60_000
# A longer `Retry-After` is taken as this.
RETRY_AFTER_MAX_S = 3_600


def backoff_ms(failures: int) -> int:
    """1 s, 2 s, 4 s … 60 s."""
    doubled: int = BACKOFF_MS * 2 ** min(failures - 1, 10)
    return min(doubled, BACKOFF_MAX_MS)


def retry_after_ms(retry_after_s: float | None) -> int:
    """0: the server asks for no pause."""
    return int(min(max(retry_after_s or 0, 0), RETRY_AFTER_MAX_S) * 1_000)


def pause_of(failures: int, retry_after_s: float | None = None) -> tuple[int, int]:
    """The pause after failures in a row, and its random part, in milliseconds. A server that asks
    for no pause, or always for the same one, gets the backoff all the same. Clients that lost a
    node together come back over a time as long as the backoff."""
    backoff = backoff_ms(failures)
    ms = max(backoff, retry_after_ms(retry_after_s))
    return ms, max(backoff, jitter_of(ms))


def jitter_of(ms: int) -> int:
    """The random part of any other sleep."""
    return ms // 5


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later. Every other error needs the caller."""
    return status in (408, 429) or status >= 500


def is_early(elapsed_ms: float, wait_s: float) -> bool:
    """Whether an answer without news came well before the wait was over."""
    return elapsed_ms < wait_s * 900
