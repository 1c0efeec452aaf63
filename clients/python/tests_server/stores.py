"""Where a server of the tests keeps its data, on either tier, and how that is backed up."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import unquote, urlsplit

Tier = Literal["embedded", "server"]
# The second one where `scripts/engines.sh with` has started its engines.
HAS_ENGINES = "HEADMARK_TEST_POSTGRES" in os.environ
TIERS: list[Tier] = ["embedded", "server"] if HAS_ENGINES else ["embedded"]


class Stores(Protocol):
    """Back up and restore while the server is stopped."""

    @property
    def settings(self) -> dict[str, str]: ...

    def back_up(self) -> None: ...

    def restore(self) -> None: ...

    def remove(self) -> None: ...


class Files:
    def __init__(self, folder: Path) -> None:
        self._data, self._backup = folder / "data", folder / "backup"

    @property
    def settings(self) -> dict[str, str]:
        return {"HEADMARK_DATA_DIR": str(self._data)}

    def back_up(self) -> None:
        shutil.copytree(self._data, self._backup)

    def restore(self) -> None:
        shutil.rmtree(self._data)
        shutil.copytree(self._backup, self._data)

    def remove(self) -> None:
        """They go with the folder."""


class Engines:
    """A database and a part of Redis that no other test uses."""

    def __init__(self) -> None:
        self._name = f"client_{secrets.token_hex(6)}"
        self._restores = 0
        self._url = urlsplit(os.environ["HEADMARK_TEST_POSTGRES"])
        self._run(f"create database {self._name}")

    @property
    def settings(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self._url._replace(path=f"/{self._name}").geturl(),
            "REDIS_URL": os.environ["HEADMARK_TEST_REDIS"],
            # Another one after each restore: an empty Redis, as far as the server sees.
            "HEADMARK_CACHE_PREFIX": f"{self._name}_{self._restores}:",
        }

    def back_up(self) -> None:
        self._run(f"create database {self._name}_backup template {self._name}")

    def restore(self) -> None:
        self._restores += 1
        self._run(f"drop database {self._name} with (force)")
        self._run(f"create database {self._name} template {self._name}_backup")

    def remove(self) -> None:
        for name in (self._name, f"{self._name}_backup"):
            self._run(f"drop database if exists {name} with (force)")

    def _run(self, statement: str) -> None:
        url = self._url
        # The password is not an argument: any account of the machine could read it.
        settings = {
            "PATH": f"{os.environ['HEADMARK_PG_BIN']}:{os.environ['PATH']}",
            "PGHOST": url.hostname or "",
            "PGPORT": str(url.port),
            "PGUSER": unquote(url.username or ""),
            "PGPASSWORD": unquote(url.password or ""),
            "PGDATABASE": url.path[1:],
            "PGOPTIONS": "-c client_min_messages=warning",
        }
        command = ["psql", "--quiet", "--no-psqlrc", "--command", statement]
        subprocess.run(command, env=settings, check=True)


def stores_of(tier: Tier, folder: Path) -> Stores:
    return Engines() if tier == "server" else Files(folder)
