#!/usr/bin/env python3
"""Upgrades nodes of an older version to this one under load, and checks that nothing acknowledged is lost.

    make check-upgrade FROM=v0.1.0     (a tag or a commit)
    scripts/engines.sh with -- scripts/check_upgrade.py target/debug/headmark FROM

It builds the older program in target/upgrade. On Postgres and Redis two nodes of it are replaced one after the other. On SQLite one is stopped, and this
version starts on its folder. Writers note what was acknowledged. Readers poll with tags, and fetch inboxes from their cursors on any node: no number may go
back, no tag may stand for an older state, and no inbox may have a gap. At the end a recount must find nothing.
"""

import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from live import Node, ask, engines, environment, say, until

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
USERS = range(1, 7)
# How long a writer insists on an answer, in seconds.
PATIENCE = 60


def build(revision):
    """The program of an older version."""
    commit = subprocess.run(["git", "rev-parse", f"{revision}^{{commit}}"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    folder = os.path.join(ROOT, "target/upgrade")
    program, tree = os.path.join(folder, f"headmark-{commit}"), os.path.join(folder, commit)
    if not os.path.exists(program):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["git", "worktree", "add", "--force", "--detach", tree, commit], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        try:
            target = os.path.join(folder, "target")
            subprocess.run(["cargo", "build", "--locked", "--bin", "headmark", "--target-dir", target], cwd=tree, check=True)
            shutil.copy(os.path.join(target, "debug/headmark"), program)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    return program


class Load:
    """Writers and readers. What they find wrong is in `wrong`."""

    def __init__(self, bases):
        self.bases, self.stop, self.lock = bases, threading.Event(), threading.Lock()
        self.raised = dict.fromkeys(USERS, 0)
        self.sent = {user: {} for user in USERS}
        self.followed = {user: set() for user in USERS}
        self.wrong, self.refused, self.polls, self.unchanged = [], {}, 0, 0
        clients = [self.increment, self.send, self.follow, self.poll, self.poll, self.fetch]
        self.threads = [threading.Thread(target=self.guarded, args=(client, seed)) for seed, client in enumerate(clients)]
        for thread in self.threads:
            thread.start()

    def guarded(self, client, seed):
        try:
            client(random.Random(seed))
        except Exception as error:
            self.report(f"{client.__name__} ended: {error!r}")

    def report(self, what):
        with self.lock:
            self.wrong.append(what)

    def insist(self, dice, method, path, body=None, key=None):
        """The answer of any node, asked until one does not refuse."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            status, _, text = ask(dice.choice(self.bases) + path, method, body, {"idempotency-key": key} if key else {})
            if status in (200, 201, 204):
                return json.loads(text or b"{}")
            with self.lock:
                self.refused[status] = self.refused.get(status, 0) + 1
            if status not in (0, 409, 503):
                raise RuntimeError(f"{method} {path}: {status} {text[:200]}")
            time.sleep(0.05)
        raise RuntimeError(f"no answer in {PATIENCE} s: {method} {path}")

    def increment(self, dice):
        while not self.stop.is_set():
            user = dice.choice(USERS)
            self.insist(dice, "POST", f"/v1/users/{user}/badges/like/increment", {}, secrets.token_hex(8))
            with self.lock:
                self.raised[user] += 1

    def send(self, dice):
        sent = 0
        while not self.stop.is_set():
            user, sent = dice.choice(USERS), sent + 1
            body = {"sender_id": str(100 + sent % 3), "client_id": f"m{sent}", "content": f"message {sent}"}
            answer = self.insist(dice, "POST", f"/v1/users/{user}/inbox", body)
            with self.lock:
                self.sent[user][answer["seq"]] = f"message {sent}"

    def follow(self, dice):
        followed = 1000
        while not self.stop.is_set():
            user, followed = dice.choice(USERS), followed + 1
            self.insist(dice, "PUT", f"/v1/users/{user}/following/{followed}")
            with self.lock:
                self.followed[user].add(str(followed))

    def poll(self, dice):
        seen, tags = {}, {}
        while not self.stop.is_set():
            user, base = dice.choice(USERS), dice.choice(self.bases)
            with self.lock:
                raised = self.raised[user]
            tag, known = tags.get(user, (None, None)) if dice.random() < 0.7 else (None, None)
            status, headers, text = ask(f"{base}/v1/users/{user}/badges", headers={"if-none-match": tag} if tag else {})
            if status == 200:
                body = json.loads(text)
                if body["degraded"]:
                    continue
                known = (body["revision"], body["counters"].get("like", {}).get("head", 0), body["epoch"])
                tags[user] = (headers["etag"], known)
            elif status != 304:
                with self.lock:
                    self.refused[status] = self.refused.get(status, 0) + 1
                if status not in (0, 503):
                    self.report(f"a poll of {user} got {status} {text[:200]}")
                continue
            revision, head, epoch = known
            if head < raised:
                self.report(f"user {user}: {raised} increments were acknowledged, and the poll ({status}) shows {head}")
            if user in seen and (revision < seen[user][0] or epoch != seen[user][1]):
                self.report(f"user {user} went back from {seen[user]} to {known}")
            seen[user] = (revision, epoch)
            with self.lock:
                self.polls += 1
                self.unchanged += status == 304

    def fetch(self, dice):
        """Every row once, in order, from whatever node."""
        cursors, epochs = dict.fromkeys(USERS, 0), {}
        while True:
            is_last = self.stop.is_set()
            for user in USERS:
                with self.lock:
                    sent = dict(self.sent[user])
                rows, more = {}, True
                while more:
                    query = {"after": cursors[user], "limit": 50, **({"epoch": epochs[user]} if user in epochs else {})}
                    page = self.insist(dice, "GET", f"/v1/users/{user}/inbox?{urllib.parse.urlencode(query)}")
                    epochs[user], more = page["epoch"], page["has_more"]
                    for item in page["items"]:
                        if item["seq"] != cursors[user] + 1:
                            self.report(f"inbox of {user}: {item['seq']} comes after {cursors[user]}")
                        cursors[user] = item["seq"]
                        rows[item["seq"]] = item["content"]
                wrong = {seq for seq, content in sent.items() if seq > cursors[user] or (seq in rows and rows[seq] != content)}
                if wrong:
                    self.report(f"inbox of {user}: acknowledged and not fetched: {sorted(wrong)[:5]}, at {cursors[user]}")
            if is_last:
                return
            time.sleep(0.02)

    def acknowledged(self):
        with self.lock:
            return sum(self.raised.values()) + sum(map(len, self.sent.values())) + sum(map(len, self.followed.values()))

    def more(self, count=150):
        """Until so many more writes are acknowledged."""
        enough = self.acknowledged() + count
        until("writes are acknowledged", lambda: self.wrong or self.acknowledged() >= enough)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        say(f"  {self.acknowledged()} writes, {self.polls} polls ({self.unchanged} times 304); refused: {self.refused}")
        assert not self.wrong, self.wrong[:5]
        for base in self.bases:
            for user in USERS:
                counters = json.loads(ask(f"{base}/v1/users/{user}/badges")[2])["counters"]
                head = counters.get("like", {}).get("head", 0)
                assert head == self.raised[user], f"user {user}: {self.raised[user]} increments were acknowledged, and {head} are there"
                self.check_follows(base, user)
        return self.refused

    def check_follows(self, base, user):
        listed, cursor = set(), ""
        while cursor is not None:
            page = json.loads(ask(f"{base}/v1/users/{user}/following?limit=100{cursor}")[2])
            listed |= {item["user_id"] for item in page["items"]}
            cursor = f"&cursor={page['next_cursor']}" if page.get("next_cursor") else None
        assert self.followed[user] <= listed, f"user {user} lost follows: {sorted(self.followed[user] - listed)[:5]}"


def drain(node):
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(60) == 0, "it does not stop cleanly"


def check_recount(binary, folder, *arguments, env=None):
    command = [binary, "recount", "--dry-run", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(env), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    say("  a recount finds nothing")


def check_servers(old, new, folder):
    """Each old node is drained and replaced; clients go to the nodes that are up."""
    env = engines()
    start = lambda binary, name: Node(binary, os.path.join(folder, f"{name}.log"), env=env)
    nodes = [start(old, "old-1"), start(old, "old-2")]
    bases = [node.base for node in nodes]
    load = Load(bases)
    try:
        load.more()
        for at in (0, 1):
            say(f"node {at + 1} is replaced")
            successor = start(new, f"new-{at + 1}")
            bases[at] = successor.base
            load.more(20)
            drain(nodes[at])
            nodes[at] = successor
            load.more()
        refused = load.end()
        assert not refused, f"requests were refused: {refused}"
        check_recount(new, folder, env=env)
    finally:
        load.stop.set()
        for node in nodes:
            node.kill()


def check_folder(old, new, folder):
    """The old process is drained, and the new one starts on the same folder and port. Clients try again meanwhile."""
    data = ["--data-dir", os.path.join(folder, "data")]
    node = Node(old, os.path.join(folder, "old.log"), *data)
    load = Load([node.base])
    try:
        load.more()
        say("the node is replaced")
        drain(node)
        node.command[0] = new
        node.start()
        load.more(300)
        load.end()
        drain(node)
        check_recount(new, folder, *data)
    finally:
        load.stop.set()
        node.kill()


def main():
    new, revision = os.path.abspath(sys.argv[1]), sys.argv[2]
    old = build(revision)
    with tempfile.TemporaryDirectory(prefix="headmark-upgrade.") as folder:
        say(f"from {revision}, on Postgres and Redis")
        check_servers(old, new, folder)
        say(f"from {revision}, on SQLite")
        check_folder(old, new, folder)
    say("nothing was lost")


if __name__ == "__main__":
    main()
