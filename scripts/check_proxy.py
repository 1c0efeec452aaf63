#!/usr/bin/env python3
"""Runs deploy/haproxy/haproxy.cfg in front of two nodes, as compose.yaml does, and checks what it promises.

    make check-proxy             (about three minutes)
    scripts/engines.sh with -- scripts/check_proxy.py target/debug/headmark

Only addresses and the number of connections are replaced. It holds polls, wakes them by writes on the other node, stops each node under load without a
failed request, and kills one without a failed poll.
"""

import collections
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from live import Many, Node, ask, engines, free_port, say, until

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEY = secrets.token_hex(16)
AUTHORIZATION = {"authorization": f"Bearer {KEY}"}


def compose_setting(name):
    """What compose.yaml gives to the nodes."""
    with open(os.path.join(ROOT, "compose.yaml")) as file:
        return re.search(rf"(?m)^\s+{name}: (\S+)$", file.read())[1]


def configuration(nodes, port):
    with open(os.path.join(ROOT, "deploy/haproxy/haproxy.cfg")) as file:
        text = file.read()
    addresses = {f"headmark-{at}:8080": f"127.0.0.1:{node.port}" for at, node in enumerate(nodes, 1)}
    for name, address in {**addresses, "bind :8080": f"bind 127.0.0.1:{port}", "maxconn 20000": "maxconn 1000"}.items():
        assert text.count(name) == 1, name
        text = text.replace(name, address)
    return text


class Load:
    """Clients that keep their connections: some poll, some are held, some write. It counts what failed."""

    def __init__(self, port, writers=2):
        self.port, self.stop = port, threading.Event()
        self.failed, self.done, self.written = [], {"poll": 0, "held": 0, "write": 0}, collections.Counter()
        self.lock = threading.Lock()
        clients = [self.poll] * 4 + [self.held] * 6 + [self.write] * writers
        self.threads = [threading.Thread(target=client, args=(at + 1,)) for at, client in enumerate(clients)]
        for thread in self.threads:
            thread.start()

    def ask(self, connection, kind, method, path, headers=None, body=None, wanted=(200, 304)):
        try:
            connection.request(method, path, body, {**AUTHORIZATION, "content-type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            text, status = answer.read(), answer.status
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            status, text, answer = 0, repr(error).encode(), None
        with self.lock:
            self.done[kind] += 1
            if status not in wanted:
                self.failed.append((kind, status, text[:200]))
        return status, answer, text

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=80)

    def poll(self, user):
        connection = self.connection()
        while not self.stop.is_set():
            self.ask(connection, "poll", "GET", f"/v1/users/{user}/badges")
            time.sleep(0.01)

    def held(self, user):
        connection, tag = self.connection(), None
        while not self.stop.is_set():
            path = f"/v1/users/{user}/badges" + ("?wait=5" if tag else "")
            _, answer, _ = self.ask(connection, "held", "GET", path, {"if-none-match": tag} if tag else {})
            tag = answer.headers["etag"] if answer else None

    def write(self, user):
        connection = self.connection()
        while not self.stop.is_set():
            path = f"/v1/users/{user}/badges/like/increment"
            status, _, _ = self.ask(connection, "write", "POST", path, {"idempotency-key": secrets.token_hex(8)}, "{}")
            self.written[user] += status == 200
            time.sleep(0.02)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        say(f"  {self.done}, failed: {self.failed[:5]}")
        return self.failed


def check_wakes(nodes, base):
    """A poll that one node holds ends when the other one writes."""
    many = Many()
    for at, user in enumerate(range(101, 111)):
        tag = ask(f"{base}/v1/users/{user}/badges", headers=AUTHORIZATION)[1]["etag"]
        before = [node.metric("headmark_polls_waiting") for node in nodes]
        held = many.start(f"{base}/v1/users/{user}/badges?wait=30", "GET", None, {**AUTHORIZATION, "if-none-match": tag})
        holder = until("a node holds it", lambda: next((at for at in (0, 1) if nodes[at].metric("headmark_polls_waiting") > before[at]), -1) + 1) - 1
        began = time.monotonic()
        ask(f"{nodes[1 - holder].base}/v1/users/{user}/badges/like/increment", "POST", {}, AUTHORIZATION)
        status, _, body = held.result()
        took = time.monotonic() - began
        assert status == 200 and json.loads(body)["total"] == 1 and took < 3, (status, body, took)
        say(f"  poll {at + 1}: held by node {holder + 1}, woken by node {2 - holder} after {took * 1000:.0f} ms")


def main():
    binary = os.path.abspath(sys.argv[1])
    if not shutil.which("haproxy"):
        raise SystemExit("check_proxy: found no haproxy in PATH; install it (on Debian and Ubuntu it is in /usr/sbin)")
    env = {**engines(), "HEADMARK_SERVICE_KEYS": f"web:{KEY}", "HEADMARK_DRAIN_DELAY_MS": compose_setting("HEADMARK_DRAIN_DELAY_MS")}
    with tempfile.TemporaryDirectory(prefix="headmark-proxy.") as folder:
        nodes = [Node(binary, os.path.join(folder, f"{name}.log"), env=env) for name in ("one", "two")]
        port = free_port()
        base = f"http://127.0.0.1:{port}"
        with open(os.path.join(folder, "haproxy.cfg"), "w") as file:
            file.write(configuration(nodes, port))
        with open(os.path.join(folder, "haproxy.log"), "wb") as log:
            proxy = subprocess.Popen(["haproxy", "-db", "-f", file.name], stdout=log, stderr=log)
        try:
            check(nodes, base, port)
        finally:
            for process in [proxy, *(node.process for node in nodes)]:
                process.kill()
                process.wait()


def check(nodes, base, port):
    until("the proxy finds the nodes", lambda: ask(f"{base}/livez")[0] == 200)
    for path, status in {"/livez": 200, "/metrics": 404, "/readyz": 404, "/v1/users/1/badges": 401}.items():
        assert ask(base + path)[0] == status, path
    say("a poll that nothing wakes is held for a minute")
    tag = ask(f"{base}/v1/users/100/badges", headers=AUTHORIZATION)[1]["etag"]
    began = time.monotonic()
    minute = Many(1).start(f"{base}/v1/users/100/badges?wait=60", "GET", None, {**AUTHORIZATION, "if-none-match": tag}, 80)
    say("a write on one node wakes polls of the other")
    check_wakes(nodes, base)
    status = minute.result()[0]
    assert status == 304 and time.monotonic() - began >= 60, (status, time.monotonic() - began)
    say(f"  304 after {time.monotonic() - began:.1f} s")
    written = collections.Counter()
    for at, node in enumerate(nodes, 1):
        say(f"node {at} stops under load")
        load = Load(port)
        time.sleep(3)
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(60) == 0
        time.sleep(2)
        node.start()
        time.sleep(4)
        assert not load.end(), "a request failed"
        written.update(load.written)
    for at, node in enumerate(nodes, 1):
        say(f"node {at} is killed under load of polls")
        load = Load(port, writers=0)
        time.sleep(3)
        node.kill()
        time.sleep(4)
        node.start()
        time.sleep(3)
        assert not load.end(), "a poll failed"
    assert len(written) == 2 and min(written.values()) > 100, written
    for user, count in written.items():
        total = json.loads(ask(f"{base}/v1/users/{user}/badges", headers=AUTHORIZATION)[2])["total"]
        assert total == count, f"user {user}: {count} writes were acknowledged, and {total} are there"
    say(f"each of {sum(written.values())} acknowledged writes is there once")


if __name__ == "__main__":
    main()
