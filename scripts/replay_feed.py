#!/usr/bin/env python3
"""Replays real activity as posts and follows, and compares who sees which feed number with a direct count over the files.

    scripts/replay_feed.py [--engines] PROGRAM FOLLOWS MESSAGES [SLICES] [MESSAGES_AT_MOST]

PROGRAM is the headmark binary. FOLLOWS has follower, followee and timestamp (who follows which topic since when), MESSAGES has timestamp and topic; both are CSV,
plain or gzip, in the order of time. A topic is a creator, each message in it a post. The log is cut into slices; after each one some users reset their feeds, and
the feeds of all who follow anything are compared with a count. The server keeps its data in a temporary folder, or
with --engines in those of `scripts/engines.sh with`. No setting of the environment reaches it. The last line counts the
differences; the status says the same.
"""

import argparse
import csv
import gzip
import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict

from live import engines, environment

# Topics and users have numbers of their own; as ids, topics begin here.
TOPICS = 1_000_000
CONNECTIONS = 32
# How many requests are on their way over one connection.
AHEAD = 32


def rows(path):
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as lines:
        yield from csv.DictReader(lines)


def events(follows, messages, at_most):
    """What happened, in the order of time: (time, topic, follower or None for a message). A follow comes before the messages of its second."""
    log = [(int(row["timestamp"]), int(row["topic"])) for row in rows(messages)][-at_most:]
    begin = log[0][0]
    all_of_it = [(max(int(row["timestamp"]), begin), 0, int(row["followee"]), int(row["follower"])) for row in rows(follows)]
    all_of_it += [(at, 1, topic, None) for at, topic in log]
    all_of_it.sort(key=lambda event: event[:2])
    return [(at, topic, follower) for at, _, topic, follower in all_of_it]


def send(port, requests):
    """Sends requests over one connection, some ahead of their answers; all must be a success."""
    with socket.create_connection(("127.0.0.1", port)) as wire:
        answers = wire.makefile("rb")
        for start in range(0, len(requests), AHEAD):
            batch = requests[start : start + AHEAD]
            wire.sendall(b"".join(f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\r\n".encode() for path in batch))
            for path in batch:
                status, length = answers.readline(), 0
                while (line := answers.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                body = answers.read(length)
                if b" 20" not in status:
                    raise RuntimeError(f"{path}: {status!r} {body[:300]!r}")


def replay(port, part, posted):
    """Sends a slice. What happens in a topic stays in order, topics run side by side."""
    lanes = [[] for _ in range(CONNECTIONS)]
    for _, topic, follower in part:
        posted[topic] += follower is None
        path = f"/v1/users/{TOPICS + topic}/posts/m{posted[topic]}" if follower is None else f"/v1/users/{follower}/following/{TOPICS + topic}"
        lanes[topic % CONNECTIONS].append(path)
    failed = []

    def run(lane):
        try:
            send(port, lane)
        except (OSError, RuntimeError) as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(lane,)) for lane in lanes if lane]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit(f"a request failed: {failed[0]}")


class Model:
    """A direct count: of each user the topics, with how much had been posted there when the user last looked."""

    def __init__(self):
        self.posts = Counter()
        self.seen = defaultdict(dict)

    def take(self, part):
        for _, topic, follower in part:
            if follower is None:
                self.posts[topic] += 1
            else:
                self.seen[follower].setdefault(topic, self.posts[topic])

    def reset(self, user):
        self.seen[user] = {topic: self.posts[topic] for topic in self.seen[user]}

    def unread(self, user):
        return sum(self.posts[topic] - seen for topic, seen in self.seen[user].items())


def start(program, folder, on_engines):
    """The server, run in the folder, where no headmark.toml is."""
    args = ["--max-following", "1000000"] + ([] if on_engines else ["--data-dir", folder])
    command = [os.path.abspath(program), "serve", "--listen", "127.0.0.1:0", "--log-format", "text", *args]
    env = environment(engines() if on_engines else None)
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
            return process, int(found[1])
    sys.exit("the server did not start")


def check(port, model, dice, last):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(method, path):
        connection.request(method, path)
        response = connection.getresponse()
        return json.loads(response.read())

    differences = 0
    for user in list(model.seen):
        got = ask("GET", f"/v1/users/{user}/feed")
        wanted = {"unread": model.unread(user), "creators": len(model.seen[user])}
        # The answer has a token, too.
        if {name: got.get(name) for name in wanted} != wanted:
            differences += 1
            print(f"user {user}: {got}, counted {wanted}")
        if not last and dice.random() < 0.3:
            ask("POST", f"/v1/users/{user}/feed/reset")
            model.reset(user)
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", action="store_true")
    parser.add_argument("program")
    parser.add_argument("follows")
    parser.add_argument("messages")
    parser.add_argument("slices", nargs="?", type=int, default=5)
    parser.add_argument("at_most", nargs="?", type=int, default=10**9)
    options = parser.parse_args()
    slices, log = options.slices, events(options.follows, options.messages, options.at_most)
    model, dice, posted, differences, took = Model(), random.Random(7), Counter(), 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        process, port = start(options.program, folder, options.engines)
        try:
            # Of a user who was not seen yet, nothing counts.
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            for user in {follower for _, _, follower in log if follower is not None}:
                connection.request("GET", f"/v1/users/{user}/feed")
                connection.getresponse().read()
            size = -(-len(log) // slices)
            for number in range(slices):
                part = log[number * size : (number + 1) * size]
                began = time.monotonic()
                replay(port, part, posted)
                took += time.monotonic() - began
                model.take(part)
                differences += check(port, model, dice, number == slices - 1)
        finally:
            process.terminate()
            process.wait(30)
    print(f"{len(log)} writes in {took:.1f} s ({len(log) / took:.0f} a second), {len(model.seen)} feeds, each compared up to {slices} times, {differences} differences")
    return differences


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
