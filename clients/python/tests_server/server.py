"""The real server: the binary that HEADMARK_BIN names, on either tier, with its own data."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from headmark import Headmark
from tests_server.stores import Tier, stores_of

SERVICE_SECRET = "a-service-key-of-the-tests"
JWT_SECRET = "a secret of the tests, of 32 bytes and more"


def binary() -> str:
    path = os.environ.get("HEADMARK_BIN")
    if not path:
        raise RuntimeError("set HEADMARK_BIN to the headmark binary, such as target/debug/headmark")
    return str(Path(path).resolve())


def user_token(user: str, expires_in_s: int) -> str:
    """The token of an end user."""

    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    claims = {"sub": user, "exp": int(time.time()) + expires_in_s}
    signed = f'{part(b"""{"alg":"HS256","typ":"JWT"}""")}.{part(json.dumps(claims).encode())}'
    digest = hmac.new(JWT_SECRET.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{part(digest)}"


class Server:
    def __init__(
        self, tier: Tier = "embedded", is_open: bool = False, follower_badge: str | None = None
    ) -> None:
        """`is_open`: without credentials."""
        self._folder = Path(tempfile.mkdtemp(prefix="headmark-client-"))
        self._stores = stores_of(tier, self._folder)
        self._settings: dict[str, str] = {}
        if not is_open:
            self._settings["HEADMARK_SERVICE_KEYS"] = f"tests:{SERVICE_SECRET}"
            self._settings["HEADMARK_JWT_SECRET"] = JWT_SECRET
        if follower_badge:
            self._settings["HEADMARK_FOLLOWER_BADGE"] = follower_badge
        self._process: subprocess.Popen[str] | None = None
        # Where it listens; each start has another port. Empty while it is away, as another test's
        # server may get the port.
        self.base_url = ""
        self.start()

    def start(self) -> None:
        settings = {
            "PATH": os.environ["PATH"],
            **self._settings,
            **self._stores.settings,
            "HEADMARK_LOG": "error",
            "HEADMARK_POLL_INTERVAL": "1",
            "HEADMARK_DRAIN_IDLE_MS": "0",
            "HEADMARK_DRAIN_TIMEOUT_MS": "2000",
        }
        command = [binary(), "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(
            command, env=settings, cwd=self._folder, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        for line in process.stdout:
            found = re.search(r"listening on (http:\S+)", line)
            if found:
                self.base_url = found[1]
                self._process = process
                return
        raise RuntimeError("the server did not start")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        process, self._process = self._process, None
        self.base_url = ""
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        process.communicate()

    def kill(self) -> None:
        """As a crash: nothing is finished."""
        self.stop(signal.SIGKILL)

    def pause(self) -> None:
        """The process hangs: its connections stay open, and nothing is answered."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def back_up(self) -> None:
        self.stop()
        self._stores.back_up()
        self.start()

    def restore(self) -> None:
        """As docs/operations/backup.md says: stop, put the data back, renew the epoch, start."""
        self.stop()
        self._stores.restore()
        renew = [binary(), "epoch", "--renew"]
        subprocess.run(renew, env=self._stores.settings, check=True, capture_output=True)
        self.start()

    def client(self) -> Headmark:
        """A backend's client, past the proxy."""
        return Headmark(self.base_url, token=SERVICE_SECRET)

    def remove(self) -> None:
        self.stop()
        self._stores.remove()
        shutil.rmtree(self._folder)
