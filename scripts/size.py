#!/usr/bin/env python3
"""How large things are: bytes a row in a database of Headmark, and what so many users need.

    scripts/size.py measure                 each table of the Postgres at DATABASE_URL: rows, bytes, bytes a row; reads only
    scripts/size.py fill PROGRAM            fills the (empty) server tier at DATABASE_URL and REDIS_URL with some of everything, then measures
    scripts/size.py cpu PROGRAM             CPU of the node, Redis and Postgres for each poll and write, on that (empty) server tier; needs wrk and Linux
    scripts/size.py plan [--write FILE]     the tables of docs/operations/sizing.md, from the figures below; --write puts them into FILE, between its marks

To plan with other figures, change them below: they are all here. To measure the bytes again: scripts/engines.sh with -- sh -c
'DATABASE_URL=$HEADMARK_TEST_POSTGRES REDIS_URL=$HEADMARK_TEST_REDIS scripts/size.py fill target/release/headmark'
"""

import http.client
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

# ---- the figures --------------------------------------------------------------------------------------------------------------

# Assumptions about users. Of each kind of write: how often a day for each user who is active on it.
ACTIVE_SHARE = 0.30
POLLS_A_DAY = 240
PEAK = 3
# Seconds between two polls of a client (HEADMARK_POLL_INTERVAL), and the life of an entry (HEADMARK_CACHE_TTL_S). How often a client comes back after a pause
# in which its entry has ended: so many polls read SQL. Any other finds the entry in the last half of its life at this interval, so that it lives on.
POLL_INTERVAL_S = 30
CACHE_TTL_S = 60
VISITS_A_DAY = 12
WRITES_A_DAY = {
    "counter raised (likes, comments, mentions)": 20,
    "marked as read (badges, channels, chats, the feed)": 12,
    "message into a group": 5,
    "direct message": 5,
    "follow or unfollow": 0.2,
    "first request of the day": 1,
}
FOLLOWS = 100
# Who has a secret or special follow, or blocks somebody.
WITH_SECRETS = 0.2
VIEWS = 2
GROUPS = 10
CHATS = 10
DEVICES = 1.5
VIEW_ITEMS_A_DAY = 0.1
POSTS_A_DAY = 0.2
NOTIFICATIONS_A_DAY = 0.5
KEYED_SHARE = 0.5
EVENTS_A_DAY = 0.6
YEAR = 365

# CPU microseconds, by `scripts/size.py cpu`. A poll asks Redis as if no node had a copy of the entry: with many nodes, few have. A write is a message into a
# group, which costs more than most.
CPU_POLL = {"node": 14.9, "redis": 4.7, "postgres": 0.0}
CPU_WRITE = {"node": 86.4, "redis": 22.8, "postgres": 122.2}
# What a poll costs more that finds no entry.
CPU_MISS = {"node": 138.1, "redis": 41.0, "postgres": 88.0}
# What it costs that an entry lives on. A node's part is assumed: it is less than what polls differ by from one measurement to the next.
CPU_LIVE_ON = {"node": 5.0, "redis": 3.8, "postgres": 2.0}
# How busy a core is to be at the peak, and how many cores a node has.
BUSY = 0.5
NODE_CORES = 4

# One large primary: its cores, and the bytes of its disks. Where what is kept for ever by default is bounded, for how many days.
PRIMARY_CORES = 64
PRIMARY_BYTES = 30e12
BOUNDED_DAYS = {"group_messages": 90, "notification_receivers": 30, "view_items": 90}

# Bytes in Redis of a user who polled within HEADMARK_CACHE_TTL_S at the peak: the entry, and the lists beside it for each followee.
REDIS_ENTRY = 504
REDIS_FOLLOWEE = 10.5

# Bytes a row with its indexes, by `scripts/size.py fill`, in Postgres 15; of small tables, where whole pages weigh, rather too many. A snapshot is for FOLLOWS
# creators (60 bytes, and 8.9 each by docs/benchmarks.md), a row of an inbox is a direct message (docs/operations/growth.md, Inboxes), an event stands for itself.
ROW = {
    "users": 889,
    "marks": 197,
    "following": 203,
    "followers": 109,
    "relation_counts": 254,
    "follower_counts": 180,
    "feed_snapshots": 950,
    "memberships": 247,
    "directs": 295,
    "devices": 208,
    "group_messages": 401,
    "inbox": 450,
    "notification_receivers": 320,
    "notification_types": 227,
    "posts": 229,
    "view_items": 270,
    "idempotency_keys": 360,
    "events": 32,
}
# What the log of Postgres grows by for each increment that is alone in its transaction, once its pages are in it since the checkpoint.
WAL_A_WRITE = 377

# ---- measuring ----------------------------------------------------------------------------------------------------------------

TABLES = """
select t.relname, sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid))
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
left join pg_inherits i on i.inhrelid = c.oid
join pg_class t on t.oid = coalesce(i.inhparent, c.oid)
where n.nspname = current_schema() and c.relkind = 'r' and c.relname <> '_sqlx_migrations'
group by t.relname
order by t.relname
"""


def ask(sql):
    """The rows that psql answers with, as texts."""
    # The password goes by the environment: every account of the machine can read the arguments of a process.
    url = urllib.parse.urlsplit(os.environ["DATABASE_URL"])
    environment, bare = dict(os.environ), url
    if url.password is not None:
        environment["PGPASSWORD"] = urllib.parse.unquote(url.password)
        bare = url._replace(netloc=url.netloc.replace(f":{url.password}@", "@", 1))
    done = subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator=\t", "--dbname", bare.geturl()],
        env=environment,
        input=sql,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split("\t") for line in done.stdout.splitlines() if line]


def measure():
    print(f"{'table':<20} {'rows':>12} {'bytes':>14} {'a row':>8} {'of it indexes':>14}")
    for name, table, indexes in ask(TABLES):
        [[rows]] = ask(f'select count(*) from "{name}"')
        if name == "events":
            # A row has all that happened in a batch.
            name, [[rows]] = "events, each", ask("select coalesce(sum(size), 0) from events")
        rows, table, indexes = int(rows), int(table), int(indexes)
        # Of a few rows the pages tell nothing.
        each = f"{(table + indexes) / rows:8.0f} {indexes / rows:14.0f}" if rows >= 1000 else f"{'-':>8} {'-':>14}"
        print(f"{name:<20} {rows:>12} {table + indexes:>14} {each}")


# ---- filling ------------------------------------------------------------------------------------------------------------------

USERS = 3000
FOLLOWS_FILLED = 15
TEXT = "This is a message of one hundred characters, as people send them to each other: see you at nine, ok?"


class Server:
    """A node, asked over many connections."""

    def __init__(self, program, *more):
        folder = tempfile.mkdtemp(prefix="headmark-size-")
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--log", "error", "--rate-limit", "0", "--data-dir", folder, *more],
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stdout:
            if found := re.search(r"is listening on http://([^ \n]+)", line):
                self.address = found[1]
                break
        else:
            raise SystemExit("the server did not start")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.local = threading.local()

    def send(self, method, path, body=None, headers=None):
        """The answer's JSON; None where it has none."""
        # The server closes one that was idle for a while.
        if time.monotonic() - getattr(self.local, "used", -math.inf) > 20:
            self.local.connection = http.client.HTTPConnection(self.address, timeout=60)
        self.local.used = time.monotonic()
        sent = json.dumps(body) if body is not None else None
        self.local.connection.request(method, path, sent, {**({"Content-Type": "application/json"} if sent else {}), **(headers or {})})
        answer = self.local.connection.getresponse()
        text = answer.read()
        if answer.status == 503:
            # It is asked for more than it takes at once.
            time.sleep(0.2)
            return self.send(method, path, body, headers)
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text) if text else None

    def metric(self, name):
        """The sum of a metric; 0 if the server has not counted it."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(f"{name}[ {{]", line))

    def send_all(self, what, requests):
        """Many requests at once. Each is what `send` takes."""
        print(f"  {what}: {len(requests)} requests", file=sys.stderr, flush=True)
        with ThreadPoolExecutor(32) as pool:
            return list(pool.map(lambda request: self.send(*request), requests))

    def stop(self):
        self.process.terminate()
        if self.process.wait(60) != 0:
            raise SystemExit("the server did not stop as it should")


def load(program, what, lines):
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        subprocess.run([program, "import", what, file.name], check=True, stdout=sys.stderr)


def fill_users(server):
    everybody = range(1, USERS + 1)
    for turn in range(3):
        items = [{"user_id": user, "badge": badge} for user in everybody for badge in ("mention", "comment", "like", "follower")]
        batches = [("POST", "/v1/badges/increment", {"items": items[at : at + 1000]}) for at in range(0, len(items), 1000)]
        server.send_all("counters", batches)
    server.send_all("first polls", [("GET", f"/v1/users/{user}/badges") for user in everybody])
    for channel in ("system", "news"):
        server.send("POST", f"/v1/broadcasts/{channel}", {"title": "Hello", "body": TEXT})
        server.send_all("channels read", [("POST", f"/v1/users/{user}/broadcasts/{channel}/read", {}) for user in range(1, 1001)])


def fill_relations(server, program):
    follows = [f"{user},{(user * 7919 + at * 104729) % USERS + 1}" for user in range(1, USERS + 1) for at in range(FOLLOWS_FILLED)]
    load(program, "follows", ["follower,followee", *(line for line in follows if len(set(line.split(","))) == 2)])
    new = [("PUT", f"/v1/users/{user}/following/{USERS + user % 50 + 1}") for user in range(1, 1501)]
    server.send_all("follows", new)
    server.send_all("asynchronous follows", [(method, path.replace("following", "blocks"), None, {"Prefer": "respond-async"}) for method, path in new[:1000]])
    load(program, "posts", ["user,post_id", *(f"{user},p{post}-{user:08}" for user in range(1, USERS + 1) for post in range(2))])
    server.send_all("feeds read", [("POST", f"/v1/users/{user}/feed/reset", {}) for user in range(1, 1201)])


def fill_chats(server):
    for group in range(1, 101):
        server.send("PUT", f"/v1/groups/{group}", {"delivery": "write" if group <= 20 else "read", "receipts": True})
        server.send("POST", f"/v1/groups/{group}/members", {"user_ids": [(group * 100 + at) % USERS + 1 for at in range(100)]})
    member = lambda group, at: (group * 100 + at) % USERS + 1
    body = lambda group, at: {"sender_id": member(group, at), "client_id": f"{group:08}-{at:08}", "content": TEXT}
    server.send_all("group messages", [("POST", f"/v1/groups/{group}/messages", body(group, at)) for at in range(20) for group in range(1, 101)])
    server.send_all("groups read", [("POST", f"/v1/users/{member(group, at)}/groups/{group}/read", {}) for at in range(20) for group in range(1, 101)])
    direct = lambda user, at: {"sender_id": (user + at % 5) % USERS + 1, "client_id": f"{user:08}-{at:08}", "content": TEXT}
    server.send_all("direct messages", [("POST", f"/v1/users/{user}/inbox", direct(user, at)) for user in range(1, 201) for at in range(10)])
    server.send_all("devices", [("PUT", f"/v1/users/{user}/devices/phone-{user:08}/cursor", {"seq": 0}) for user in range(1, 1501)])


def fill_others(server):
    for notification in range(20):
        kind = ("notice", "order")[notification % 2]
        server.send("POST", "/v1/notifications", {"type": kind, "title": "Hello", "content": TEXT, "recipients": list(range(1, USERS + 1))})
    server.send_all("notifications read", [("POST", f"/v1/users/{user}/notifications/read", {"all": True}) for user in range(1, 2001)])
    item = lambda at: ("PUT", f"/v1/views/forum/{at % 500}/items/item-{at:08}", {"actor_id": at % 2000 + 1})
    server.send_all("items of views", [item(at) for at in range(2000)])
    server.send_all("views", [("POST", f"/v1/users/{at % 2000 + 1}/views/forum/{at % 500}/access", {}) for at in range(2000)])
    keyed = lambda user: ("POST", f"/v1/users/{user}/badges/mention/increment", {}, {"Idempotency-Key": f"00000000-0000-0000-0000-{user:012}"})
    server.send_all("increments with keys", [keyed(user) for user in range(1, 1501)])


def measure_log(server):
    """Bytes of the log for each increment, one at a time, well after a checkpoint's first touch of each page."""
    rounds = [("POST", f"/v1/users/{user}/badges/mention/increment", {}) for user in range(1, 501)]
    server.send_all("increments, to have their pages in the log", rounds)
    [[before]] = ask("select pg_current_wal_insert_lsn()")
    for request in rounds:
        server.send(*request)
    [[grown]] = ask(f"select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{before}')")
    print(f"the log grew by {int(grown) / len(rounds):.0f} bytes for each increment alone in its transaction")


def fill(program):
    server = Server(program)
    try:
        fill_users(server)
        fill_relations(server, program)
        fill_chats(server)
        fill_others(server)
        ask("vacuum analyze")
        measure_log(server)
    finally:
        server.stop()
    ask("vacuum analyze")
    measure()


# ---- CPU ----------------------------------------------------------------------------------------------------------------------

LOADED_USERS = 20_000
LOADED_GROUPS = 1_000
LOAD_S = 8
# What wrk sends again and again. Polls that read SQL are one round through all users, each of whom is a miss once.
LOADS = {
    "poll": 'return wrk.format("GET", "/v1/users/" .. math.random(USERS) .. "/badges")',
    "poll that reads SQL": None,
    "increment": 'return wrk.format("POST", "/v1/users/" .. math.random(USERS) .. "/badges/mention/increment")',
    "message into a group": 'return wrk.format("POST", "/v1/groups/" .. math.random(GROUPS) .. "/messages", {["Content-Type"] = "application/json"}, message())',
}
LUA = f"""
local USERS, GROUPS, sent, thread = {LOADED_USERS}, {LOADED_GROUPS}, 0, 0
local threads = 0
function setup(t) t:set("thread", threads); threads = threads + 1 end
function init() math.randomseed(os.time() + _G.thread); sent = _G.thread end
local function message()
    sent = sent + 2
    return '{{"sender_id":' .. math.random(10) .. ',"client_id":"m' .. sent .. '","content":"{TEXT}"}}'
end
function request() REQUEST end
"""


def redis(*command):
    """What Redis answers. The password goes by the environment here, too."""
    url = urllib.parse.urlsplit(os.environ["REDIS_URL"])
    environment, account = dict(os.environ), []
    if url.password is not None:
        environment["REDISCLI_AUTH"] = urllib.parse.unquote(url.password)
        account = ["--user", urllib.parse.unquote(url.username)] if url.username else []
    bare = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
    asked = ["redis-cli", "--no-auth-warning", "-u", bare, *account, *command]
    return subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout


def ticks(pid, with_children=False):
    """Processor time of a process, its ended children with it if asked for, in seconds."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, fields[11 : 15 if with_children else 13])) / os.sysconf("SC_CLK_TCK")


def cpu_of_stores_and(node):
    """Processor time so far, in seconds: the node's, that of Redis, that of Postgres."""
    [[postmaster]] = [line for line in ask("select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)") if line]
    with open(f"/proc/{postmaster}/task/{postmaster}/children") as file:
        children = file.read().split()
    fields = dict(line.split(":", 1) for line in redis("info", "cpu").splitlines() if ":" in line)
    in_redis = float(fields["used_cpu_sys"]) + float(fields["used_cpu_user"])
    return {"node": ticks(node), "redis": in_redis, "postgres": ticks(postmaster, True) + sum(map(ticks, children))}


def load_with_wrk(address, request, connections=64):
    """Sends this for a while; how many were answered."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LUA.replace("REQUEST", request))
        script.flush()
        done = subprocess.run(["wrk", "-t2", f"-c{connections}", f"-d{LOAD_S}s", "-s", script.name, f"http://{address}"], capture_output=True, text=True, check=True)
    if "Non-2xx" in done.stdout:
        raise SystemExit(f"not all were answered well:\n{done.stdout}")
    return int(re.search(r"(\d+) requests in", done.stdout)[1])


def cpu(program):
    server = Server(program)
    try:
        everybody = range(1, LOADED_USERS + 1)
        items = [{"user_id": user, "badge": badge} for user in everybody for badge in ("mention", "comment", "like", "follower")]
        server.send_all("counters", [("POST", "/v1/badges/increment", {"items": items[at : at + 1000]}) for at in range(0, len(items), 1000)])
        server.send_all("groups", [("PUT", f"/v1/groups/{group}", {}) for group in range(1, LOADED_GROUPS + 1)])
        members = {"user_ids": list(range(1, 11))}
        server.send_all("members", [("POST", f"/v1/groups/{group}/members", members) for group in range(1, LOADED_GROUPS + 1)])
        server.send_all("first polls", [("GET", f"/v1/users/{user}/badges") for user in everybody])
        ask("vacuum analyze")
        for what, request in LOADS.items():
            if request is None:
                redis("flushall")
                time.sleep(1)
            before = cpu_of_stores_and(server.process.pid)
            if request is None:
                answered = len(server.send_all(what, [("GET", f"/v1/users/{user}/badges") for user in everybody]))
            else:
                answered = load_with_wrk(server.address, request)
            after = cpu_of_stores_and(server.process.pid)
            each = ", ".join(f"{part} {(after[part] - before[part]) / answered * 1e6:.1f}" for part in after)
            print(f"{what}: µs of CPU: {each} ({answered:,} requests)", flush=True)
    finally:
        server.stop()
    cpu_of_living_on(program)


def cpu_of_living_on(program):
    """What it costs more that entries live on: polls while they do, against polls while they need not."""
    spent = {}
    for ttl_s in (3600, 10):
        server = Server(program, "--cache-ttl-s", str(ttl_s))
        try:
            redis("flushall")
            server.send_all("first polls", [("GET", f"/v1/users/{user}/badges") for user in range(1, LOADED_USERS + 1)])
            load_with_wrk(server.address, LOADS["poll"], 2)
            before, extended = cpu_of_stores_and(server.process.pid), server.metric("headmark_cache_extended_total")
            polls = load_with_wrk(server.address, LOADS["poll"], 2)
            after, extended = cpu_of_stores_and(server.process.pid), server.metric("headmark_cache_extended_total") - extended
            spent[ttl_s] = {part: (after[part] - before[part]) / polls for part in after}
        finally:
            server.stop()
    each = ", ".join(f"{part} {(spent[10][part] - spent[3600][part]) * polls / extended * 1e6:.1f}" for part in spent[10])
    print(f"an entry lives on: µs of CPU: {each} ({extended:,.0f} of them at {polls:,} polls)", flush=True)


# ---- planning -----------------------------------------------------------------------------------------------------------------


def short(number):
    """Three digits, with the unit of thousands."""
    for unit, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= unit:
            number /= unit
            return f"{number:.0f}{name}" if number >= 100 else f"{number:.3g}{name}"
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"


def rows_of(users):
    """Rows of each table: those that stay as they are for so many users, and those that come each day, with the days that they are kept."""
    active = users * ACTIVE_SHARE
    sent = active * WRITES_A_DAY["direct message"]
    return [
        # table, rows at rest, rows a day, days
        ("users", users, 0, 0),
        ("marks", active * VIEWS, 0, 0),
        ("following", users * FOLLOWS, 0, 0),
        ("followers", users * FOLLOWS, 0, 0),
        ("relation_counts", users * WITH_SECRETS, 0, 0),
        ("follower_counts", users * 4, 0, 0),
        ("feed_snapshots", active, 0, 0),
        ("memberships", users * GROUPS, 0, 0),
        ("directs", users * CHATS, 0, 0),
        ("devices", users * DEVICES, 0, 0),
        ("notification_types", users * 2, 0, 0),
        ("posts", 0, active * POSTS_A_DAY, 400),
        ("inbox", 0, sent * 2, 30),
        ("events", 0, active * EVENTS_A_DAY, 7),
        ("idempotency_keys", 0, active * WRITES_A_DAY["counter raised (likes, comments, mentions)"] * KEYED_SHARE, 1),
        ("group_messages", 0, active * WRITES_A_DAY["message into a group"], YEAR),
        ("notification_receivers", 0, users * NOTIFICATIONS_A_DAY, YEAR),
        ("view_items", 0, active * VIEW_ITEMS_A_DAY, YEAR),
    ]


def cores(rate, micros):
    return rate * micros / 1e6 / BUSY


def plan():
    sizes = (1e6, 1e7, 1e8)
    lines = ["| what | how it is reckoned | 10^6 users | 10^7 users | 10^8 users |", "| --- | --- | ---: | ---: | ---: |"]

    def line(what, how, value, form=short):
        lines.append(f"| {what} | {how} | {' | '.join(form(value(users)) for users in sizes)} |")

    writes = sum(WRITES_A_DAY.values())
    active = lambda users: users * ACTIVE_SHARE
    polls_s = lambda users: active(users) * POLLS_A_DAY / 86400 * PEAK
    writes_s = lambda users: active(users) * writes / 86400 * PEAK
    missed_s = lambda users: polls_s(users) * VISITS_A_DAY / POLLS_A_DAY
    living_on_s = lambda users: (polls_s(users) - missed_s(users)) * min(1, POLL_INTERVAL_S / (CACHE_TTL_S / 2))

    def of_store(store):
        kinds = ((polls_s, CPU_POLL), (missed_s, CPU_MISS), (living_on_s, CPU_LIVE_ON), (writes_s, CPU_WRITE))
        return lambda users: sum(cores(rate(users), micros[store]) for rate, micros in kinds)

    def reckoned(store):
        kinds = (("polls", CPU_POLL), ("SQL polls", CPU_MISS), ("living on", CPU_LIVE_ON), ("writes", CPU_WRITE))
        return f"({' + '.join(f'{name} × {micros[store]:g} µs' for name, micros in kinds if micros[store])}) / {BUSY}"

    whole = lambda number: f"{math.ceil(number):,}"
    some = lambda number: f"{number:.1f}" if number < 10 else whole(number)
    line("active on a day", f"users × {ACTIVE_SHARE}", active)
    line("polls a second, at the peak", f"active × {POLLS_A_DAY} / 86,400 × {PEAK}", polls_s)
    line("of them read SQL", f"polls × {VISITS_A_DAY} / {POLLS_A_DAY}", missed_s)
    line("entries that live on", f"the other polls × min(1, {POLL_INTERVAL_S} s / ({CACHE_TTL_S} s / 2))", living_on_s)
    line("writes a second, at the peak", f"active × {writes:g} / 86,400 × {PEAK}", writes_s)
    line("cores of nodes", reckoned("node"), of_store("node"), some)
    nodes = lambda users: max(2, math.ceil(of_store("node")(users) / NODE_CORES) + 1)
    line(f"nodes of {NODE_CORES} cores", "the same / cores of a node, and one to spare; two at least", nodes, whole)
    line("cores of Redis", reckoned("redis"), of_store("redis"), some)
    line("masters of Redis", "one core each; two or more are a cluster", lambda users: math.ceil(of_store("redis")(users)), whole)
    entries = lambda users: polls_s(users) * max(POLL_INTERVAL_S, CACHE_TTL_S) * (REDIS_ENTRY + FOLLOWS * REDIS_FOLLOWEE)
    line("bytes in Redis, at most", f"polls × {max(POLL_INTERVAL_S, CACHE_TTL_S)} s × ({REDIS_ENTRY} + {FOLLOWS} × {REDIS_FOLLOWEE})", entries)
    line("cores of Postgres", reckoned("postgres"), of_store("postgres"), some)
    line("the log of Postgres, bytes a second at the peak", f"writes × {WAL_A_WRITE}", lambda users: writes_s(users) * WAL_A_WRITE)
    rest = lambda users: sum(rows * ROW[table] for table, rows, _, _ in rows_of(users))
    kept = lambda users: sum(day * days * ROW[table] for table, _, day, days in rows_of(users) if days != YEAR)
    year = lambda users: sum(day * days * ROW[table] for table, _, day, days in rows_of(users) if days == YEAR)
    bounded = lambda users: rest(users) + kept(users) + sum(day * BOUNDED_DAYS[table] * ROW[table] for table, _, day, days in rows_of(users) if days == YEAR)
    line("bytes in Postgres: what is there once", "rows × bytes a row, below", rest)
    line("bytes in Postgres: what is swept", "rows a day × days × bytes a row", kept)
    line("bytes in Postgres: what a year adds that is kept", "the same for 365 days", year)
    days = ", ".join(f"`{table}` {days}" for table, days in BOUNDED_DAYS.items())
    line("bytes in Postgres: all of it, where each is kept for so many days", days, bounded)
    carries = lambda most, of: short(sizes[-1] * most / of(sizes[-1]))
    lines += [
        "",
        "| what binds | how it is reckoned | users |",
        "| --- | --- | ---: |",
        f"| one master of Redis, by its core | 1 core / cores of Redis for a user | {carries(1, of_store('redis'))} |",
        f"| one primary, by its CPU | {PRIMARY_CORES} cores / cores of Postgres for a user | {carries(PRIMARY_CORES, of_store('postgres'))} |",
        f"| one primary, by its bytes | {short(PRIMARY_BYTES)}B / bytes of a user, all bounded | {carries(PRIMARY_BYTES, bounded)} |",
        f"| one primary, by its bytes, everything kept for ever | the same after one year; less with each more | {carries(PRIMARY_BYTES, lambda users: rest(users) + kept(users) + year(users))} |",
    ]
    lines += ["", "| table | bytes a row | rows, 10^6 users | bytes | 10^7 users | 10^8 users |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for of_size in zip(*(rows_of(users) for users in sizes)):
        table, _, _, days = of_size[0]
        counts = [rows + day * days for _, rows, day, days in of_size]
        name = f"`{table}`" + (f", {days} days" if days else "")
        cells = [short(counts[0]), *(short(count * ROW[table]) for count in counts)]
        lines.append(f"| {name} | {ROW[table]} | {' | '.join(cells)} |")
    return "\n".join(lines)


BEGIN, END = "<!-- scripts/size.py plan -->\n\n", "\n\n<!-- end -->"


def write(path):
    with open(path) as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    with open(path, "w") as file:
        file.write(before + BEGIN + plan() + END + after)


def main(arguments):
    match arguments:
        case ["measure"]:
            measure()
        case ["fill", program]:
            fill(program)
        case ["cpu", program]:
            cpu(program)
        case ["plan"]:
            print(plan())
        case ["plan", "--write", path]:
            write(path)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
