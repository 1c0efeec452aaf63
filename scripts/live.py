"""What scripts start and ask: a Postgres and a Redis that they may stop, nodes, requests.

Run them with `scripts/engines.sh with -- …`, which names the programs and the account of Postgres.
"""

import concurrent.futures
import contextlib
import json
import os
import resource
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


def say(*words):
    print(f"[{time.strftime('%H:%M:%S')}]", *words, flush=True)


def until(what, check, seconds=60, pause=0.2):
    """Waits until `check` holds, and returns what it found."""
    give_up = time.monotonic() + seconds
    while not (found := check()):
        if time.monotonic() > give_up:
            raise SystemExit(f"after {seconds} seconds still not so: {what}")
        time.sleep(pause)
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(url, method="GET", body=None, headers=None, timeout=30):
    """The status and the JSON of an answer; 0 where none came."""
    data = None if body is None else json.dumps(body).encode()
    media = {} if body is None else {"content-type": "application/json"}
    request = urllib.request.Request(url, data, {**media, **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read()
    except OSError:
        return 0, {}, b""


def environment(more=None):
    """Our variables without any setting of another server, least of all the stores that it names; and these."""
    is_setting = lambda name: name.startswith(("HEADMARK_", "REDIS_")) or name in ("DATABASE_URL", "DATABASE_URL_FILE")
    return {**{name: value for name, value in os.environ.items() if not is_setting(name)}, **(more or {})}


def engines():
    """The variables that name the stores of `scripts/engines.sh with`."""
    return {"DATABASE_URL": os.environ["HEADMARK_TEST_POSTGRES"], "REDIS_URL": os.environ["HEADMARK_TEST_REDIS"]}


class Many:
    """Requests side by side."""

    def __init__(self, threads=24):
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)

    def all(self, requests):
        return [sent.result() for sent in [self.pool.submit(ask, *request) for request in requests]]

    def start(self, *request):
        return self.pool.submit(ask, *request)


class Postgres:
    """A cluster of its own, with what the tests of the program also have. Every account of the machine can read the
    arguments of a process, so passwords go by the environment."""

    def __init__(self, folder, password, of=None):
        self.bin, self.data, self.port, self.password = os.environ["HEADMARK_PG_BIN"], folder, free_port(), password
        uid, _, gid = os.environ.get("HEADMARK_PG_OWNER", "").partition(":")
        self.account = {"user": int(uid), "group": int(gid), "extra_groups": []} if uid else {}
        os.mkdir(folder, 0o700)
        if uid:
            os.chown(folder, int(uid), int(gid))
        if of:
            self.run("pg_basebackup", "-d", of.address(), "-R", "-X", "stream", "-c", "fast", "--no-sync", env=of.client())
        else:
            with tempfile.NamedTemporaryFile("w", dir="/tmp") as secret:
                secret.write(password)
                secret.flush()
                # Only its owner may read it, who is the one that runs initdb.
                if uid:
                    os.chown(secret.name, int(uid), int(gid))
                self.run("initdb", "-U", "headmark", "-A", "scram-sha-256", "--pwfile", secret.name, "--no-sync")
        self.start()

    def run(self, program, *arguments, env=None):
        command = [os.path.join(self.bin, program), "-D", self.data, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", env=env, **self.account)

    def start(self):
        options = f"-c port={self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=300 -c fsync=off"
        self.run("pg_ctl", "-w", "-l", os.path.join(self.data, "log"), "-o", options, "start")

    def stop(self):
        self.run("pg_ctl", "-w", "-m", "immediate", "stop")

    def url(self):
        return f"postgres://headmark:{self.password}@127.0.0.1:{self.port}/postgres"

    def address(self):
        """The URL without the password."""
        return f"postgres://headmark@127.0.0.1:{self.port}/postgres"

    def client(self):
        """The environment of a client."""
        return {**os.environ, "PGPASSWORD": self.password}

    def psql(self, statement):
        command = [os.path.join(self.bin, "psql"), "-XtAqc", statement, self.address()]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", env=self.client())
        return done.stdout.strip()

    @contextlib.contextmanager
    def locked(self, tables):
        """Another program's transaction holds these tables."""
        command = [os.path.join(self.bin, "psql"), "-Xq", self.address()]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        other = subprocess.Popen(command, cwd="/", env=self.client(), **pipes)
        other.stdin.write(f"begin;\nlock table {tables} in access exclusive mode;\n\\echo locked\n")
        other.stdin.flush()
        other.stdout.readline()
        try:
            yield
        finally:
            other.stdin.write("rollback;\n\\q\n")
            other.stdin.close()
            other.wait()


class Redis:
    def __init__(self, folder):
        self.program = shutil.which("redis-server") or shutil.which("valkey-server")
        self.folder, self.port, self.password = folder, free_port(), secrets.token_hex(16)
        os.mkdir(folder, 0o700)
        self.conf = os.path.join(folder, "redis.conf")
        with open(self.conf, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as conf:
            conf.write(f'bind 127.0.0.1\nport {self.port}\ndir "{folder}"\nsave ""\nappendonly no\nrequirepass {self.password}\n')
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program, self.conf], stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def url(self):
        return f"redis://default:{self.password}@127.0.0.1:{self.port}"


class Node:
    """A node as a process of its own, in the folder of its log, where no headmark.toml is."""

    def __init__(self, binary, log, *more, env=None, files=None):
        self.log, self.env, self.files = log, environment(env), files
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.command = [binary, "serve", "--listen", f"127.0.0.1:{self.port}", *more]
        self.start()

    def start(self):
        bound = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files))) if self.files else None
        with open(self.log, "ab") as log:
            folder = os.path.dirname(self.log)
            self.process = subprocess.Popen(
                self.command, cwd=folder, env=self.env, stdout=subprocess.DEVNULL, stderr=log, preexec_fn=bound
            )
        try:
            until(f"{self.base} is ready", lambda: ask(f"{self.base}/readyz", timeout=3)[0] == 200)
        except BaseException:
            self.kill()
            raise

    def kill(self):
        self.process.kill()
        self.process.wait()

    def metric(self, name):
        text = ask(f"{self.base}/metrics", timeout=5)[2].decode()
        return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + " ")), 0.0)

    def poll(self, user):
        return (f"{self.base}/v1/users/{user}/badges",)

    def raise_badge(self, user):
        return (f"{self.base}/v1/users/{user}/badges/like/increment", "POST", {})
