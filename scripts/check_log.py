#!/usr/bin/env python3
"""Imports a real chat log into a server of its own, and compares every number with a count over the files.

    scripts/check_log.py [--engines] [--joins] [--one-file] [--coarse SECONDS] [--runs N] [--last N] PROGRAM LOG

PROGRAM is the headmark binary. LOG is a CSV file with timestamp (Unix seconds), channel and sender,
plain or gzip, in the order of time. The server keeps its data in a temporary folder, or with --engines
in those of `scripts/engines.sh with`. No setting of the environment reaches it.

--joins adds joins and leaves: a user joins before a first message, leaves after a last one, is away
in longer pauses, and reconnects now and then. They go into a second file, or with --one-file between
the messages. --coarse rounds all times down, as --coarse 60 to the minute. The files are imported N
times (2), and everything is compared after each run: the messages and members of each group, what is
unread in each group of each user, the sum in each user's summary, and who has received and read the
last messages of each group (1000). The last line counts the differences, and the exit status shows
whether there are any.
"""

import argparse
import csv
import gzip
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

from live import engines, environment

# A longer pause between two messages of a user means that the user was away.
AWAY_SECONDS = 1800
# How much earlier a user joins, and how much later one leaves, at most.
JITTER_SECONDS = 300
# How often a user reconnects after a message, and how often the first line of a user is no join.
RECONNECTS = 0.05
SILENT_JOINS = 0.2
# How many messages are asked about in one request.
SCREENFUL = 100

MESSAGE, JOIN, LEAVE = "message", "join", "leave"


def read_log(path):
    """The messages in their order, as (time, channel, user, what)."""
    opened = gzip.open(path, "rt", newline="") if path.endswith(".gz") else open(path, newline="")
    with opened as lines:
        return [(int(row["timestamp"]), row["channel"], int(row["sender"]), MESSAGE) for row in csv.DictReader(lines)]


def with_joins(messages):
    """The messages, with joins and leaves between them. The same for the same log."""
    dice = random.Random(1)
    lines, last = [], {}
    for at, (time, channel, user, _) in enumerate(messages):
        lines.append(((time, at), messages[at]))
        before = last.get((channel, user))

        def add(when, place, what):
            lines.append(((when, place), (when, channel, user, what)))

        if before is None:
            if dice.random() >= SILENT_JOINS:
                add(max(0, time - dice.randrange(JITTER_SECONDS)), at - 0.5, JOIN)
        elif time - before[0] > AWAY_SECONDS:
            add(before[0] + dice.randrange(JITTER_SECONDS), before[1] + 0.5, LEAVE)
            if dice.random() >= SILENT_JOINS:
                add(time - dice.randrange(JITTER_SECONDS), at - 0.5, JOIN)
        if dice.random() < RECONNECTS:
            add(time, at + 0.3, LEAVE)
            add(time, at + 0.4, JOIN)
        last[channel, user] = (time, at)
    for (channel, user), (time, at) in last.items():
        if dice.random() < 0.5:
            lines.append(((time + dice.randrange(JITTER_SECONDS), at + 0.5), (time, channel, user, LEAVE)))
    lines.sort(key=lambda line: line[0])
    # A line has the time of its place.
    return [(key[0], *line[1:]) for key, line in lines]


def write_files(lines, folder, one_file):
    """Writes the lines as they are imported. Returns the arguments, and the lines in the order in which they count."""
    log, members = os.path.join(folder, "log.csv"), os.path.join(folder, "members.csv")
    with open(log, "w", newline="") as log_file, open(members, "w", newline="") as members_file:
        to_log, to_members = csv.writer(log_file, lineterminator="\n"), csv.writer(members_file, lineterminator="\n")
        to_log.writerow(["timestamp", "channel", "sender"] + (["event"] if one_file else []))
        to_members.writerow(["timestamp", "channel", "user", "event"])
        for time, channel, user, what in lines:
            if one_file:
                to_log.writerow([time, channel, user, what])
            elif what == MESSAGE:
                to_log.writerow([time, channel, user])
            else:
                to_members.writerow([time, channel, user, what])
    if one_file:
        return [log], lines
    # By time; joins and leaves of a second before its messages, and each file in its own order.
    return [log, "--members", members], sorted(lines, key=lambda line: (line[0], line[3] == MESSAGE))


class Group:
    """One group, counted line by line."""

    def __init__(self):
        self.senders = []
        # Of each user the memberships: [head before the first message, last message or None, read up to].
        self.spans = defaultdict(list)

    def take(self, user, what):
        spans = self.spans[user]
        is_member = bool(spans) and spans[-1][1] is None
        if what == LEAVE:
            if is_member:
                spans[-1][1] = len(self.senders)
            return
        if not is_member:
            spans.append([len(self.senders), None, len(self.senders)])
        if what == MESSAGE:
            self.senders.append(user)
            spans[-1][2] = len(self.senders)

    def members(self):
        return {user for user, spans in self.spans.items() if spans and spans[-1][1] is None}

    def unread(self, user):
        return len(self.senders) - self.spans[user][-1][2]

    def receipts(self, first):
        """Of the messages from this one on: number, how many have read it, how many have not. The sender does not count."""
        head = len(self.senders)
        received, have_read = [0] * (head + 2), [0] * (head + 2)
        for spans in self.spans.values():
            for start, end, read in spans:
                end = head if end is None else end
                received[start + 1] += 1
                received[end + 1] -= 1
                if min(end, read) > start:
                    have_read[start + 1] += 1
                    have_read[min(end, read) + 1] -= 1
        recipients = readers = 0
        for at, sender in enumerate(self.senders, 1):
            recipients += received[at]
            readers += have_read[at]
            if at >= first:
                # Who sends is a member, and has read what is above.
                own = any(start < at and (end is None or at <= end) for start, end, _ in self.spans[sender])
                yield at, readers - own, recipients - readers


class Server:
    """A running server, asked over one connection."""

    def __init__(self, program, args, folder, env):
        command = [program, "serve", "--listen", "127.0.0.1:0", "--log-format", "text", *args]
        self.process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
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


def check(server, counted, groups, last):
    differences = compared = 0

    def compare(what, got, wanted, count=1):
        nonlocal differences, compared
        compared += count
        if got != wanted:
            wrong = sum(a != b for a, b in zip(got, wanted)) if count > 1 and len(got) == len(wanted) else 1
            differences += wrong
            print(f"{what}: {wrong} of {count} differ: {str(got)[:200]}, counted {str(wanted)[:200]}")

    unread = defaultdict(dict)
    for channel, group in counted.items():
        number, head = groups[channel], len(group.senders)
        compare(f"messages of {channel}", server.get(f"/v1/groups/{number}")["head"], head)
        shown, members = server.walk(f"/v1/groups/{number}/members"), group.members()
        compare(f"members of {channel}", {int(of["user_id"]) for of in shown}, members)
        for user in group.spans:
            unread[user].update({number: group.unread(user)} if user in members else {})
        first, shown = max(1, head - last + 1), []
        for start in range(first, head + 1, SCREENFUL):
            end = min(head, start + SCREENFUL - 1)
            page = server.get(f"/v1/groups/{number}/receipts?from={start}&to={end}")["items"]
            shown += [(of["seq"], of["read_count"], of["unread_count"]) for of in page]
        wanted = list(group.receipts(first))
        compare(f"receipts of {channel}", shown, wanted, len(wanted))
    for user, wanted in unread.items():
        got = {int(of["group_id"]): of["unread"] for of in server.walk(f"/v1/users/{user}/groups")}
        compare(f"groups of user {user}", got, wanted)
        compare(f"summary of user {user}", server.get(f"/v1/users/{user}/badges")["total"], sum(wanted.values()))
    print(f"{len(counted)} groups, {len(unread)} users, {compared} comparisons, {differences} differences")
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", action="store_true")
    parser.add_argument("--joins", action="store_true")
    parser.add_argument("--one-file", action="store_true")
    parser.add_argument("--coarse", type=int, default=1, metavar="SECONDS")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--last", type=int, default=1000)
    parser.add_argument("program")
    parser.add_argument("log")
    options = parser.parse_args()
    # Run in the folder of its data, where no headmark.toml is.
    program, env = os.path.abspath(options.program), environment(engines() if options.engines else None)
    messages = read_log(options.log)
    lines = with_joins(messages) if options.joins else messages
    lines = [(time - time % options.coarse, *rest) for time, *rest in lines]
    differences = 0
    with tempfile.TemporaryDirectory() as folder:
        files, ordered = write_files(lines, folder, options.one_file)
        counted = defaultdict(Group)
        for _, channel, user, what in ordered:
            counted[channel].take(user, what)
        stores = [] if options.engines else ["--data-dir", folder]
        for run in range(1, options.runs + 1):
            command = [program, "import", "messages", *files, *stores]
            imported = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
            print(f"run {run}")
            print(imported[imported.index("lines read"):], end="")
            groups = {name: int(group) for name, group in re.findall(r"^channel (.*) is group (\d+)$", imported, re.M)}
            groups.update({name: int(name) for name in counted if name not in groups})
            server = Server(program, stores, folder, env)
            try:
                differences += check(server, counted, groups, options.last)
            finally:
                server.stop()
    print(f"{options.runs} runs, {differences} differences")
    return differences


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
