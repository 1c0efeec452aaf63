"""Every vector in clients/vectors, played to the state machines."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from headmark.machines.inbox import initial_inbox, step_inbox
from headmark.machines.poller import initial_poller, step_poller

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
POLLER = sorted((VECTORS / "poller").glob("*.json"))
INBOX = sorted((VECTORS / "inbox").glob("*.json"))


def play(state: Any, step: Any, vector: dict[str, Any]) -> None:
    for number, expected in enumerate(vector["steps"]):
        before, event = deepcopy(state), deepcopy(expected["event"])
        following, effects = step(state, event, expected["at"])
        assert effects == expected["effects"], f"step {number}: {vector['rule']}"
        # A machine must not change what it was given.
        assert (state, event) == (before, expected["event"])
        state = following


@pytest.mark.parametrize("path", POLLER, ids=lambda path: str(path.stem))
def test_poller(path: Path) -> None:
    vector = json.loads(path.read_text())
    play(initial_poller(vector["config"]), step_poller, vector)


@pytest.mark.parametrize("path", INBOX, ids=lambda path: str(path.stem))
def test_inbox(path: Path) -> None:
    vector = json.loads(path.read_text())
    play(initial_inbox(vector["config"], vector["position"]), step_inbox, vector)


def test_there_are_vectors() -> None:
    assert len(POLLER) >= 35
    assert len(INBOX) >= 15
