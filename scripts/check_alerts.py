#!/usr/bin/env python3
"""Makes the cause of each alert of deploy/prometheus/alerts.yml, and waits until a real Prometheus fires it and resolves it.

    make check-alerts            (about a quarter of an hour)
    scripts/engines.sh with -- scripts/check_alerts.py target/debug/headmark [ALERT…]

It starts nodes on a Postgres with a replica and a Redis of its own, and a Prometheus that scrapes each second. The rules
are those of the file, except that every `for:` is two seconds: that one event fires nothing is for promtool to test. At the
end it asks for each query of the dashboard.

To add an alert: a function marked with @cause that makes the cause, calls `scene.fires`, and ends it.
"""

import concurrent.futures
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

from live import Many, Node, Postgres, Redis, ask, free_port, say, until

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RULES = os.path.join(ROOT, "deploy/prometheus/alerts.yml")
DASHBOARD = os.path.join(ROOT, "deploy/grafana/headmark.json")
# How long an alert may take to fire and to resolve; the longest range of a rule is ten minutes.
FIRES_S = 120
RESOLVES_S = 180
RESOLVES_LATE_S = 720


# ---- the scene ----------------------------------------------------------------------------------------------------


class Prometheus:
    """It scrapes each second the nodes that `targets` lists."""

    def __init__(self, folder):
        os.mkdir(folder)
        self.base = f"http://127.0.0.1:{free_port()}"
        self.targets = os.path.join(folder, "targets.json")
        self.watch([])
        with open(RULES) as rules:
            shortened, count = re.subn(r"(?m)^(\s+for:) \d+[smh]$", r"\1 2s", rules.read())
        assert count == len(re.findall(r"(?m)^\s+for:", shortened)), "a `for:` that is not shortened"
        with open(os.path.join(folder, "alerts.yml"), "w") as rules:
            rules.write(shortened)
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yml"],
            "scrape_configs": [{"job_name": "headmark", "file_sd_configs": [{"files": ["targets.json"], "refresh_interval": "1s"}]}],
        }
        with open(os.path.join(folder, "prometheus.yml"), "w") as file:
            json.dump(config, file)
        arguments = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--log.level=warn"]
        arguments.append(f"--web.listen-address={self.base.removeprefix('http://')}")
        self.process = subprocess.Popen(["prometheus", *arguments], stderr=open(os.path.join(folder, "log"), "wb"))

    def stop(self):
        self.process.kill()
        self.process.wait()

    def watch(self, nodes):
        with open(self.targets + ".new", "w") as file:
            json.dump([{"targets": [node.base.removeprefix("http://") for node in nodes]}], file)
        os.rename(self.targets + ".new", self.targets)

    def firing(self):
        alerts = json.loads(ask(f"{self.base}/api/v1/alerts")[2])["data"]["alerts"]
        return {alert["labels"]["alertname"]: alert for alert in alerts if alert["state"] == "firing"}

    def query(self, expression):
        answer = json.loads(ask(f"{self.base}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")[2])
        if answer["status"] != "success":
            raise SystemExit(f"check_alerts: Prometheus refuses {expression}: {answer}")
        return answer["data"]["result"]


CAUSES = []


def cause(*alerts):
    def mark(make):
        CAUSES.append((alerts, make))
        return make

    return mark


class Scene:
    """All that runs. `ends` stops each part, also where a later one does not start."""

    def __init__(self, binary, folder, ends):
        self.binary, self.folder, self.watched, self.fired, self.late = binary, folder, [], {}, []
        os.chmod(folder, 0o755)
        password = secrets.token_hex(16)
        self.postgres = Postgres(os.path.join(folder, "postgres"), password)
        ends.callback(self.postgres.stop)
        self.replica = Postgres(os.path.join(folder, "replica"), password, self.postgres)
        ends.callback(self.replica.stop)
        self.redis = Redis(os.path.join(folder, "redis"))
        ends.callback(self.redis.stop)
        ends.callback(lambda: [node.kill() for node in self.watched])
        self.prometheus = Prometheus(os.path.join(folder, "prometheus"))
        ends.callback(self.prometheus.stop)
        until("Prometheus is ready", lambda: ask(f"{self.prometheus.base}/-/ready")[0] == 200)
        self.many = Many()
        self.user = 1_000_000
        self.one, self.two = self.node("one"), self.node("two")

    def node(self, name, *more, env=None, files=None, log=None):
        """One more node, which Prometheus scrapes."""
        stores = {"DATABASE_URL": self.postgres.url(), "REDIS_URL": self.redis.url(), "HEADMARK_REPLICA_URL": self.replica.url()}
        log = log or os.path.join(self.folder, f"{name}.log")
        node = Node(self.binary, log, "--drain-idle-ms", "0", *more, env={**stores, **(env or {})}, files=files)
        self.watch(node)
        return node

    def forget(self, node):
        """Ends it, and Prometheus forgets it."""
        node.kill()
        self.watch(node, False)

    def watch(self, node, is_there=True):
        self.watched = [other for other in self.watched if other is not node] + ([node] if is_there else [])
        self.prometheus.watch(self.watched)

    def new_users(self, count):
        self.user += count
        return range(self.user - count, self.user)

    def fires(self, *alerts, meanwhile=lambda: None):
        """Waits until each of them fires. `meanwhile` keeps the cause alive."""
        for alert in alerts:
            began = time.monotonic()

            def look(alert=alert):
                meanwhile()
                return self.prometheus.firing().get(alert)

            found = until(f"{alert} fires", look, FIRES_S)
            labels = {name: value for name, value in found["labels"].items() if name not in ("alertname", "job")}
            say(f"  {alert} fires after {time.monotonic() - began:.0f} s {labels}: {found['annotations']['summary']}")
            self.fired[alert] = True

    def resolved(self, *alerts, meanwhile=lambda: None):
        for alert in alerts:
            began = time.monotonic()

            def look(alert=alert):
                meanwhile()
                return alert not in self.prometheus.firing()

            until(f"{alert} is resolved", look, RESOLVES_S)
            say(f"  {alert} is resolved after {time.monotonic() - began:.0f} s")

    def calm_down(self, alerts):
        """An earlier cause may have fired them, too: waits until what goes well outweighs it."""

        def well():
            self.many.all([self.one.poll(1)] * 500 + [self.one.raise_badge(1)] * 200)
            return not set(alerts) & set(self.prometheus.firing())

        if set(alerts) & set(self.prometheus.firing()):
            until(f"none of {alerts} fires before its cause", well, RESOLVES_LATE_S, 1)

    def resolved_later(self, *alerts):
        """A rule over minutes is resolved when these are over."""
        self.late += alerts


# ---- the causes ---------------------------------------------------------------------------------------------------


@cause("HeadmarkCommitsUnknown")
def a_synchronous_standby_is_gone(scene):
    scene.postgres.psql("alter system set synchronous_standby_names = 'gone'")
    scene.postgres.psql("select pg_reload_conf()")
    write = scene.many.start(*scene.one.raise_badge(scene.new_users(1)[0]))
    scene.fires("HeadmarkCommitsUnknown")
    scene.postgres.psql("alter system reset synchronous_standby_names")
    scene.postgres.psql("select pg_reload_conf()")
    write.result()
    scene.resolved_later("HeadmarkCommitsUnknown")


@cause("HeadmarkDatabaseAway", "HeadmarkWritesFail", "HeadmarkPollsDegraded")
def postgres_is_stopped(scene):
    def traffic():
        scene.many.all([scene.one.raise_badge(1), scene.two.raise_badge(2), scene.one.poll(scene.new_users(1)[0])])

    traffic()
    scene.postgres.stop()
    scene.fires("HeadmarkDatabaseAway", "HeadmarkWritesFail", "HeadmarkPollsDegraded", meanwhile=traffic)
    scene.postgres.start()
    scene.resolved("HeadmarkDatabaseAway")
    # What went well since then outweighs it.
    well = lambda: scene.many.all(scene.one.raise_badge(user) for user in scene.new_users(300))
    scene.resolved("HeadmarkWritesFail", meanwhile=well)
    scene.resolved_later("HeadmarkPollsDegraded")


@cause("HeadmarkCacheAway", "HeadmarkEventsStalled")
def redis_is_stopped(scene):
    scene.redis.stop()
    follow = lambda: ask(f"{scene.one.base}/v1/users/{scene.new_users(1)[0]}/following/9", "PUT")
    follow()
    scene.fires("HeadmarkCacheAway", "HeadmarkEventsStalled")
    scene.redis.start()
    scene.resolved("HeadmarkCacheAway", "HeadmarkEventsStalled", meanwhile=follow)


@cause("HeadmarkCacheFlaps")
def redis_comes_and_goes(scene):
    write = lambda: ask(*scene.one.raise_badge(1))
    for _ in range(5):
        scene.redis.stop()
        until("a bypass begins", lambda: (write(), scene.one.metric("headmark_cache_bypassing") == 1)[1])
        scene.redis.start()
        until("it ends", lambda: (write(), scene.one.metric("headmark_cache_bypassing") == 0)[1])
    scene.fires("HeadmarkCacheFlaps")
    scene.resolved_later("HeadmarkCacheFlaps")


@cause("HeadmarkPollsSlow", "HeadmarkLocksHeld", "HeadmarkHitRateLow")
def another_transaction_holds_the_users(scene):
    with scene.postgres.locked("users"):
        writes = [scene.many.start(*scene.one.raise_badge(user)) for user in scene.new_users(3)]
        polls = lambda: scene.many.all(scene.two.poll(user) for user in scene.new_users(12))
        scene.fires("HeadmarkLocksHeld", "HeadmarkPollsSlow", meanwhile=polls)
    concurrent.futures.wait(writes)
    scene.resolved("HeadmarkLocksHeld")
    # Many users who were never here, then the same ones again.
    once = lambda: scene.many.all(scene.two.poll(user) for user in scene.new_users(500))
    scene.fires("HeadmarkHitRateLow", meanwhile=once)
    again = lambda: scene.many.all([scene.two.poll(1)] * 1000)
    scene.resolved("HeadmarkHitRateLow", "HeadmarkPollsSlow", meanwhile=again)


@cause("HeadmarkWritesRefused")
def a_queue_is_full(scene):
    node = scene.node("small", "--lane-aside", "1", "--write-timeout-ms", "3000")
    with scene.postgres.locked("users"):
        scene.fires("HeadmarkWritesRefused", meanwhile=lambda: scene.many.all(node.raise_badge(user) for user in scene.new_users(20)))
    scene.forget(node)
    scene.resolved_later("HeadmarkWritesRefused")


@cause("HeadmarkCommitsSlow")
def the_database_is_slow(scene):
    body = "begin perform pg_sleep(0.1); return new; end"
    scene.postgres.psql(f"create function slow() returns trigger language plpgsql as '{body}'")
    scene.postgres.psql("create trigger slow before insert or update on users for each row execute function slow()")
    items = [{"user_id": str(user), "badge": "like"} for user in scene.new_users(100)]
    write = lambda: ask(f"{scene.one.base}/v1/badges/increment", "POST", {"items": items})
    scene.fires("HeadmarkCommitsSlow", meanwhile=write)
    scene.postgres.psql("drop function slow() cascade")
    scene.resolved_later("HeadmarkCommitsSlow")


@cause("HeadmarkBatchesSplit")
def the_database_refuses_a_write(scene):
    refused = scene.new_users(1)[0]
    body = f"begin if new.user_id = {refused} then raise exception ''refused''; end if; return new; end"
    scene.postgres.psql(f"create function refuse() returns trigger language plpgsql as '{body}'")
    scene.postgres.psql("create trigger refuse before insert or update on users for each row execute function refuse()")
    writes = lambda: scene.many.all(scene.one.raise_badge(user) for user in [*scene.new_users(20), refused, *scene.new_users(20)])
    scene.fires("HeadmarkBatchesSplit", meanwhile=writes)
    scene.postgres.psql("drop function refuse() cascade")
    scene.resolved_later("HeadmarkBatchesSplit")


@cause("HeadmarkDrift")
def somebody_changes_a_number(scene):
    user = scene.new_users(1)[0]
    ask(*scene.one.raise_badge(user))
    ask(*scene.one.poll(user))
    scene.postgres.psql(f"update users set following = following + 1 where user_id = {user}")
    scene.fires("HeadmarkDrift", meanwhile=lambda: ask(*scene.one.poll(user)))
    scene.resolved_later("HeadmarkDrift")


@cause("HeadmarkLogLinesLost")
def the_disk_of_the_log_is_full(scene):
    if not os.path.exists("/dev/full"):
        say("  left out: this system has no /dev/full")
        return
    node = scene.node("mute", env={"HEADMARK_LOG": "debug"}, log="/dev/full")
    scene.fires("HeadmarkLogLinesLost", meanwhile=lambda: ask(*node.poll(1)))
    scene.forget(node)
    scene.resolved_later("HeadmarkLogLinesLost")


@cause("HeadmarkPanics")
def a_request_meets_a_bug(scene):
    # Only a binary with failpoints has such a bug.
    node = scene.node("bug", env={"FAILPOINTS": "feed::before_read=panic"})
    ask(f"{node.base}/v1/users/5/posts/p1", "PUT", {})

    def meet():
        follower = scene.new_users(1)[0]
        ask(f"{node.base}/v1/users/{follower}/following/5", "PUT")
        ask(*node.poll(follower))

    scene.fires("HeadmarkPanics", meanwhile=meet)
    scene.forget(node)
    scene.resolved_later("HeadmarkPanics")


def twenty_polls(node, headers):
    """Polls that wait, and what sends those again that have ended."""
    url, holders = node.poll(1)[0], Many(20)
    # The first poll of a user changes the tag.
    tag = [ask(url, "GET", None, headers)[1]["etag"] for _ in range(2)][1]
    hold = (f"{url}?wait=20", "GET", None, {**headers, "if-none-match": tag})
    held = [holders.start(*hold) for _ in range(20)]

    def keep():
        held[:] = [holders.start(*hold) if poll.done() else poll for poll in held]

    return held, keep


@cause("HeadmarkHeldPollsFull", "HeadmarkCallerLimited")
def a_service_holds_its_share_of_polls(scene):
    # A node without keys has one caller, which may hold everything.
    key = secrets.token_hex(16)
    node = scene.node("keyed", "--waiting-polls", "20", env={"HEADMARK_SERVICE_KEYS": f"web:{key}"})
    held, keep = twenty_polls(node, {"authorization": f"Bearer {key}"})
    scene.fires("HeadmarkHeldPollsFull", "HeadmarkCallerLimited", meanwhile=keep)
    concurrent.futures.wait(held)
    scene.resolved("HeadmarkHeldPollsFull")
    scene.forget(node)
    scene.resolved_later("HeadmarkCallerLimited")


@cause("HeadmarkHeldPollsFull", "HeadmarkOverloaded")
def many_polls_are_held(scene):
    node = scene.node("few", "--waiting-polls", "20", "--max-in-flight", "21")
    held, keep = twenty_polls(node, {})
    scene.fires("HeadmarkHeldPollsFull", meanwhile=keep)
    scene.fires("HeadmarkOverloaded", meanwhile=lambda: (keep(), scene.many.all([node.poll(2)] * 50)))
    concurrent.futures.wait(held)
    scene.resolved("HeadmarkHeldPollsFull")
    scene.forget(node)
    scene.resolved_later("HeadmarkOverloaded")


@cause("HeadmarkFileDescriptors")
def files_run_short(scene):
    node = scene.node("files", "--max-connections", "1000", files=300)
    idle = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(int(250 - node.metric("process_open_fds")))]
    scene.fires("HeadmarkFileDescriptors")
    for connection in idle:
        connection.close()
    scene.resolved("HeadmarkFileDescriptors")
    scene.forget(node)


@cause("HeadmarkReplicaLagging")
def the_replica_stands_still(scene):
    scene.replica.psql("select pg_wal_replay_pause()")
    scene.fires("HeadmarkReplicaLagging", meanwhile=lambda: ask(*scene.one.raise_badge(1)))
    scene.replica.psql("select pg_wal_replay_resume()")
    scene.resolved("HeadmarkReplicaLagging")


@cause("HeadmarkFanOutBehind")
def inboxes_are_locked(scene):
    base = scene.one.base
    ask(f"{base}/v1/groups/7", "PUT", {"delivery": "write"})
    ask(f"{base}/v1/groups/7/members", "POST", {"user_ids": ["71", "72", "73"]})
    with scene.postgres.locked("inbox"):
        message = {"sender_id": "71", "client_id": "c1", "content": "Hello"}
        sent = scene.many.start(f"{base}/v1/groups/7/messages", "POST", message)
        scene.fires("HeadmarkFanOutBehind")
    say(f"  the message: {sent.result()[0]}")
    scene.resolved("HeadmarkFanOutBehind")


@cause("HeadmarkOperationsPileUp")
def relations_are_locked(scene):
    later = {"prefer": "respond-async"}
    with scene.postgres.locked("follower_counts"):
        follow = lambda user: (f"{scene.one.base}/v1/users/{user}/following/9", "PUT", None, later)
        answers = scene.many.all(follow(user) for user in scene.new_users(2200))
        say(f"  accepted: {sum(answer[0] == 202 for answer in answers)} of {len(answers)}")
        scene.fires("HeadmarkOperationsPileUp")
    scene.resolved("HeadmarkOperationsPileUp")


@cause("HeadmarkClockWrong")
def a_clock_is_wrong(scene):
    # Only a binary with failpoints can be told the wrong time.
    node = scene.node("fast", env={"FAILPOINTS": "clock::ahead_ms=return(3600000)"})
    scene.fires("HeadmarkClockWrong")
    scene.forget(node)
    scene.resolved_later("HeadmarkClockWrong")


@cause("HeadmarkRemovalStuck")
def rows_cannot_be_removed(scene):
    user = scene.new_users(1)[0]
    ask(f"{scene.one.base}/v1/users/{user}/views/home/1/access", "POST", {})
    body = "begin raise exception ''refused''; end"
    scene.postgres.psql(f"create function refuse() returns trigger language plpgsql as '{body}'")
    scene.postgres.psql("create trigger refuse before delete on marks for each row execute function refuse()")
    ask(f"{scene.one.base}/v1/users/{user}", "DELETE")
    # Nobody waits for a day; and an erasure takes longer than entries live, also when nothing fails any more.
    later = lambda by: scene.postgres.psql(f"update removals set created_at = created_at {by} 100000000 where finished_at = 0")
    later("-")
    scene.fires("HeadmarkRemovalStuck")
    scene.postgres.psql("drop function refuse() cascade")
    later("+")
    scene.resolved("HeadmarkRemovalStuck")


@cause("HeadmarkPushStuck")
def a_job_cannot_be_moved(scene):
    body = "begin raise exception ''refused''; end"
    scene.postgres.psql(f"create function refuse() returns trigger language plpgsql as '{body}'")
    scene.postgres.psql("create trigger refuse before update or delete on unread_jobs for each row execute function refuse()")
    an_hour_ago = "(extract(epoch from now()) * 1000)::bigint - 3600000"
    scene.postgres.psql(f"insert into unread_jobs (scope_id, due_at, next_at, after_id) values (0, {an_hour_ago}, 0, 0)")
    scene.fires("HeadmarkPushStuck")
    scene.postgres.psql("drop function refuse() cascade")
    scene.resolved("HeadmarkPushStuck")


@cause("HeadmarkNodeNotReady", "HeadmarkNodeGone")
def a_node_stops(scene):
    node = scene.node("old", "--drain-delay-ms", "12000")
    node.process.send_signal(signal.SIGTERM)
    scene.fires("HeadmarkNodeNotReady")
    node.process.wait()
    scene.resolved("HeadmarkNodeNotReady")
    scene.fires("HeadmarkNodeGone")
    node.start()
    scene.resolved("HeadmarkNodeGone")
    scene.forget(node)


@cause("HeadmarkNoNode")
def all_nodes_are_killed(scene):
    for node in [scene.one, scene.two]:
        node.kill()
    scene.fires("HeadmarkNoNode", "HeadmarkNodeGone")
    for node in [scene.one, scene.two]:
        node.start()
    scene.resolved("HeadmarkNoNode", "HeadmarkNodeGone")


# ---- the run ------------------------------------------------------------------------------------------------------


def check_dashboard(scene):
    """Each query of the dashboard is understood; those that show nothing are named."""
    with open(DASHBOARD) as file:
        panels = json.load(file)["panels"]
    empty, count = [], 0
    for panel in panels:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$job", "headmark").replace("$instance", ".*").replace("$__rate_interval", "10m")
            count += 1
            if not scene.prometheus.query(expression):
                empty.append(f"{panel['title']}: {target['expr']}")
    say(f"dashboard: {count} queries, {len(empty)} of them without a result")
    for line in empty:
        say("  without a result:", line)


def main():
    binary, wanted = os.path.abspath(sys.argv[1]), set(sys.argv[2:])
    with open(RULES) as rules:
        alerts = re.findall(r"(?m)^\s+- alert: (\w+)$", rules.read())
    missing = set(alerts) - {alert for made, _ in CAUSES for alert in made}
    if missing:
        raise SystemExit(f"check_alerts: nothing makes the cause of {sorted(missing)}")
    if not shutil.which("prometheus"):
        raise SystemExit("check_alerts: found no prometheus; scripts/lint-deploy.sh installs it on Debian and Ubuntu")
    with tempfile.TemporaryDirectory(prefix="headmark-alerts.") as folder, contextlib.ExitStack() as ends:
        scene = Scene(binary, folder, ends)
        time.sleep(10)
        if scene.prometheus.firing():
            raise SystemExit(f"check_alerts: healthy nodes, and these fire: {sorted(scene.prometheus.firing())}")
        say("healthy nodes: no alert fires")
        for made, make in CAUSES:
            if not wanted or wanted & set(made):
                scene.calm_down(made)
                say(make.__name__.replace("_", " "))
                make(scene)
                others = sorted(set(scene.prometheus.firing()) - set(scene.late))
                if others:
                    say(f"  also firing: {others}")
        check_dashboard(scene)
        for alert in scene.late:
            until(f"{alert} is resolved", lambda alert=alert: alert not in scene.prometheus.firing(), RESOLVES_LATE_S, 1)
            say(f"  {alert} is resolved")
        until("nothing fires any more", lambda: not scene.prometheus.firing(), RESOLVES_LATE_S, 1)
        say(f"{len(scene.fired)} of {len(alerts)} alerts fired and were resolved")


if __name__ == "__main__":
    main()
