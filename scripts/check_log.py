#!/usr/bin/env python3
"""Imports a real chat log into a server of its own, and compares every number with a count over the file.

    scripts/check_log.py PROGRAM LOG

PROGRAM is the headmark binary, LOG a CSV file with timestamp, channel and sender, plain or gzip, in the order of time. With DATABASE_URL (and REDIS_URL) set,
the server tier is used, which must be empty; else a temporary folder. Compared are: the messages and members of each group, what is unread in each group of
each user, the sum in each user's sheet, and who has read the last messages of each group. The last line counts the differences; the status says the same.
"""

import csv
import gzip
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

# How many messages of each group are asked about for receipts.
LAST = 100


def read_log(path):
    """Sender after sender, by channel in the order in which they come."""
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    channels = {}
    with opened as lines:
        for row in csv.DictReader(lines):
            channels.setdefault(row["channel"], []).append(int(row["sender"]))
    return channels


class Server:
    """A running server, asked over one connection."""

    def __init__(self, program, args):
        command = [program, "serve", "--listen", "127.0.0.1:0", "--log-format", "text", *args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            found = re.search(r"http://(127\.0\.0\.1):(\d+)", line)
            if found:
                break
        else:
            sys.exit("the server did not start")
        self.connection = http.client.HTTPConnection(found[1], int(found[2]), timeout=60)

    def get(self, path):
        self.connection.request("GET", path)
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {body[:300]}")
        return json.loads(body)

    def walk(self, path):
        """All items of a list, page by page."""
        cursor = ""
        while True:
            page = self.get(f"{path}?limit=100{cursor}")
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = f"&cursor={page['next_cursor']}"

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def receipts(senders):
    """Recipients and readers of the last messages: who joined by an earlier one, less the sender; who sent that one or a later one."""
    first, last = {}, {}
    for at, sender in enumerate(senders, 1):
        first.setdefault(sender, at)
        last[sender] = at
    for at in range(max(1, len(senders) - LAST + 1), len(senders) + 1):
        sender = senders[at - 1]
        recipients = [user for user, joined in first.items() if joined < at and user != sender]
        yield at, len(recipients), sum(last[user] >= at for user in recipients)


def check(server, channels, groups):
    differences, compared = 0, 0

    def compare(what, got, wanted):
        nonlocal differences, compared
        compared += 1
        if got != wanted:
            differences += 1
            print(f"{what}: {got}, counted {wanted}")

    unread = defaultdict(dict)
    for channel, senders in channels.items():
        group = groups[channel]
        about = server.get(f"/v1/groups/{group}")
        members = set(senders)
        compare(f"messages of {channel}", about["head"], len(senders))
        compare(f"members of {channel}", {int(of["user_id"]) for of in server.walk(f"/v1/groups/{group}/members")}, members)
        last = {sender: at for at, sender in enumerate(senders, 1)}
        for user in members:
            unread[user][group] = len(senders) - last[user]
        from_seq = max(1, len(senders) - LAST + 1)
        shown = server.get(f"/v1/groups/{group}/receipts?from={from_seq}&to={len(senders)}")["items"]
        wanted = [(at, read, recipients - read) for at, recipients, read in receipts(senders)]
        compare(f"receipts of {channel}", [(of["seq"], of["read_count"], of["unread_count"]) for of in shown], wanted)
    for user, wanted in unread.items():
        got = {int(of["group_id"]): of["unread"] for of in server.walk(f"/v1/users/{user}/groups")}
        compare(f"groups of user {user}", got, wanted)
        compare(f"sheet of user {user}", server.get(f"/v1/users/{user}/badges")["total"], sum(wanted.values()))
    print(f"{len(channels)} groups, {len(unread)} users, {compared} comparisons, {differences} differences")
    return differences


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, log = sys.argv[1:]
    channels = read_log(log)
    with tempfile.TemporaryDirectory() as folder:
        args = [] if os.environ.get("DATABASE_URL") else ["--data-dir", folder]
        imported = subprocess.run([program, "import", "messages", log, *args], stdout=subprocess.PIPE, text=True, check=True).stdout
        print(imported[imported.index("lines read"):], end="")
        groups = {name: int(group) for name, group in re.findall(r"^channel (.*) is group (\d+)$", imported, re.M)}
        groups.update({name: int(name) for name in channels if name not in groups})
        server = Server(program, args)
        try:
            return check(server, channels, groups)
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
