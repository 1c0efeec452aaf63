"""The client of Headmark: typed requests, an unread poller, an inbox reader, an events reader."""

from . import routes, types
from .background import InboxReader, UnreadPoller
from .call import Answer, Call
from .client import AsyncHeadmark, Headmark
from .errors import HeadmarkError, NoAnswerError, ProblemError
from .events import AsyncEventsReader, AsyncPositionStore, EventsReader, FileStore, PositionStore
from .exchange import Limits
from .inbox import AsyncInboxReader
from .machines.events import EventsGap, EventsPosition
from .machines.inbox_types import InboxPosition
from .machines.poller import UnreadView
from .poller import AsyncUnreadPoller

__all__ = [
    "Answer",
    "AsyncEventsReader",
    "AsyncHeadmark",
    "AsyncInboxReader",
    "AsyncPositionStore",
    "AsyncUnreadPoller",
    "Call",
    "EventsGap",
    "EventsPosition",
    "EventsReader",
    "FileStore",
    "Headmark",
    "HeadmarkError",
    "InboxPosition",
    "InboxReader",
    "Limits",
    "NoAnswerError",
    "PositionStore",
    "ProblemError",
    "UnreadPoller",
    "UnreadView",
    "routes",
    "types",
]
