"""The README and the examples, run as a newcomer runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headmark import Headmark, routes
from tests_server.proxy import FaultyProxy
from tests_server.server import Server

HERE = Path(__file__).resolve().parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE / "src")}
BLOCK = re.compile(r"<!-- runs -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
EXAMPLES = BLOCK.findall((HERE / "README.md").read_text())


@pytest.fixture(scope="module")
def open_server() -> Iterator[Server]:
    """Others have used it before, also the users of the examples."""
    server = Server(is_open=True, follower_badge="follower")
    with Headmark(server.base_url) as headmark:
        headmark.send(routes.send_broadcast("system", title="News"))
        headmark.send(routes.light_dot("mall"))
        for user in range(40, 50):
            headmark.send(routes.increment_badge(user, "comment", by=2))
            headmark.send(routes.increment_badge(user, "mention", by=2))
            headmark.send(routes.follow_user(user, 6))
            before = routes.send_direct(user, sender_id=7, client_id="before", content="Before")
            headmark.send(before)
    yield server
    server.remove()


def run(server: Server, folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        check=False,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("number", range(5))
def test_readme(open_server: Server, tmp_path: Path, number: int) -> None:
    code, output = EXAMPLES[number]
    assert "http://127.0.0.1:8080" in code
    code = code.replace("http://127.0.0.1:8080", open_server.base_url)
    for _ in range(2):
        assert run(open_server, tmp_path, "-c", code) == output


def test_every_example_runs() -> None:
    assert len(EXAMPLES) == 5
    assert (HERE / "README.md").read_text().count("```python") == 5


def test_backend(open_server: Server, tmp_path: Path) -> None:
    backend = str(HERE / "examples" / "backend.py")
    output = run(open_server, tmp_path, backend, open_server.base_url, "--owner", "142")
    pushes = ["push to 142: 1", "push to 142: 1", "push to 142: 2", "push to 142: 1"]
    assert output.splitlines() == pushes


def test_push_sender(tmp_path: Path) -> None:
    """It is killed, and so is the server. Pushes of what came meanwhile are sent; users without a
    push device get none."""
    server = Server(is_open=True)
    try:
        with Headmark(server.base_url) as headmark:
            for user in (200, 300):
                headmark.send(routes.put_device(user, "phone", push=True))
            for user in (199, 200):
                headmark.send(routes.increment_badge(user, "like", by=120))
        assert until(server.base_url, tmp_path, "push to 200: 99+")[-1] == "push to 200: 99+"
        server.kill()
        server.start()
        with Headmark(server.base_url) as headmark:
            headmark.send(routes.reset_badge(200, "like"))
            for n in range(3):
                headmark.send(
                    routes.send_direct(300, sender_id=7, client_id=str(n), content="Hello")
                )
            # Nothing of theirs is written.
            headmark.send(routes.send_broadcast("news", title="Hello"))
        pushes = until(server.base_url, tmp_path, "push to 300: 4")
        assert pushes[-1] == "push to 300: 4"
        assert {push.split(":")[0] for push in pushes} == {"push to 200", "push to 300"}
    finally:
        server.remove()


@pytest.mark.parametrize("trouble", ["outage", "erased"])
def test_a_push_sender_goes_on(tmp_path: Path, trouble: str) -> None:
    """Between the page of events and the question for its numbers, the server stops for longer than
    the client repeats a request by itself, or one of the users is erased."""
    server = Server(is_open=True)
    requests = 0

    def upstream() -> str:
        nonlocal requests
        requests += 1
        # The first is for the page, the second for the epoch.
        if requests == 3 and trouble == "outage":
            server.kill()
            threading.Timer(5, server.start).start()
        if requests == 3 and trouble == "erased":
            with Headmark(server.base_url) as headmark:
                headmark.send(routes.erase_user(200))
        return server.base_url

    proxy = FaultyProxy(1, upstream)
    try:
        with Headmark(server.base_url) as headmark:
            for user in (200, 300):
                headmark.send(routes.put_device(user, "phone", push=True))
                headmark.send(routes.increment_badge(user, "like"))
        pushes = ["push to 200: 1", "push to 300: 1"]
        expected = pushes if trouble == "outage" else pushes[1:]
        assert until(proxy.base_url, tmp_path, "push to 300: 1") == expected
    finally:
        proxy.stop()
        server.remove()


def until(base_url: str, folder: Path, last: str) -> list[str]:
    """What it prints up to a line. It is killed some time after that."""
    sender = str(HERE.parent.parent / "examples" / "push" / "push_sender.py")
    command = [sys.executable, sender, base_url]
    process = subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    lines: list[str] = []
    position = folder / "push-sender.json"
    before = position.read_text() if position.exists() else ""
    try:
        assert process.stdout
        for line in process.stdout:
            lines.append(line.rstrip())
            if lines[-1] == last:
                break
        # It has saved that the page was handled.
        limit = time.monotonic() + 5
        while not position.exists() or position.read_text() == before:
            assert time.monotonic() < limit
            time.sleep(0.01)
    finally:
        process.kill()
        process.communicate()
    return lines


def test_the_wheel_has_its_types(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=HERE, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {"headmark/py.typed", "headmark/routes.py", "headmark/machines/poller.py"}
    assert names >= expected
    assert not [name for name in names if name.startswith(("tests", "scripts", "examples"))]
