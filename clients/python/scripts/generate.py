"""Writes `types.py` and `routes.py` from the OpenAPI document.

A schema becomes a TypedDict, a union or an alias. A route becomes a function that returns a `Call`.
The sync and the async client both send calls, so no route is written twice. An input that this
script does not know stops it: nothing is left out silently, except the routes outside `/v1`.
"""

import json
import keyword
import subprocess
import sys
from pathlib import Path

from scripts.schemas import Json, Schemas

HERE = Path(__file__).resolve().parent.parent
OPENAPI = HERE.parent.parent / "openapi" / "openapi.json"
PACKAGE = HERE / "src" / "headmark"
NOTE = '"""{} Written by `scripts/generate.py`: do not edit."""\n\n'


class Routes:
    def __init__(self, document: Json) -> None:
        self.schemas = Schemas(document)
        self.paths: Json = document["paths"]

    def answer_of(self, operation: Json) -> str | None:
        """What the route answers on success; null: not JSON."""
        kinds: list[str] = []
        for status, response in operation["responses"].items():
            if status[0] != "2":
                continue
            content = response.get("content", {})
            if content and "application/json" not in content:
                return None
            schema = content["application/json"]["schema"] if content else None
            kinds.append(
                "None" if schema is None else self.schemas.type_of(schema, False, "types.")
            )
        return " | ".join(sorted(dict.fromkeys(kinds), key=lambda kind: kind == "None"))

    def route(self, method: str, path: str, operation: Json) -> str | None:
        answer = self.answer_of(operation)
        if answer is None:
            return None
        positional: list[str] = []
        required: list[str] = []
        optional: list[str] = []
        parts: dict[str, list[str]] = {"query": [], "body": []}

        def add(field: str, schema: Json, is_required: bool, part: str) -> None:
            argument = field + "_" if keyword.iskeyword(field) else field
            annotation = self.schemas.type_of(schema, True, "types.").replace("types.Id", "Id")
            parts[part].append(f'"{field}": {argument}')
            end = "" if is_required else " | None = None"
            (required if is_required else optional).append(f"{argument}: {annotation}{end}")

        content = operation.get("requestBody", {}).get("content", {})
        if content:
            ((properties, names),) = self.schemas.variants(content["application/json"]["schema"])
            for field, schema in properties.items():
                add(field, schema, field in names, "body")
        options = []
        for parameter in operation.get("parameters", []):
            name, place = parameter["name"], parameter["in"]
            if place == "path":
                annotation = self.schemas.type_of(parameter["schema"], True, "types.")
                positional.append(f"{name}: {annotation.replace('types.Id', 'Id')}")
            elif place == "query":
                add(name, parameter["schema"], parameter.get("required", False), "query")
            elif name == "Idempotency-Key":
                optional.append("idempotency_key: str | None = None")
                options += ["idempotency_key=idempotency_key", "takes_key=True"]
            elif name == "Prefer":
                optional.append("respond_async: bool = False")
                options.append("respond_async=respond_async")
            elif name != "If-None-Match":  # the tag is an argument of `fetch`
                raise SystemExit(f"an unknown header: {name} of {path}")
        named = required + optional
        arguments = ", ".join(positional + (["*", *named] if named else []))
        places = ", ".join(f'"{p.split(":")[0]}": {p.split(":")[0]}' for p in positional)
        options = [f"path={{{places}}}"] * bool(places) + options
        options += [f"{part}={{{', '.join(fields)}}}" for part, fields in parts.items() if fields]
        if content and not parts["body"]:
            options.append("body={}")
        if "None" in answer.split(" | "):
            options.append("may_be_empty=True")
        name = operation["operationId"]
        call = ", ".join([f'"{name}", "{method.upper()}", "{path}"', *options])
        doc = f'    """{operation["summary"].rstrip(".")}."""\n'
        return f"def {name}({arguments}) -> Call[{answer}]:\n{doc}    return Call({call})\n"

    def text(self) -> str:
        imports = "from collections.abc import Mapping, Sequence\n"
        imports += "from typing import Any, Literal\n\nfrom . import types\n"
        imports += "from .call import Call\nfrom .types import Id\n\n"
        found = (
            self.route(method, path, operation)
            for path, operations in sorted(self.paths.items())
            if path.startswith("/v1/")
            for method, operation in operations.items()
        )
        head = "from __future__ import annotations\n\n" + imports
        return head + "\n\n".join(route for route in found if route)


def generate(document: Json) -> dict[str, str]:
    texts = {
        "types.py": NOTE.format("The bodies of requests and answers.") + Schemas(document).text(),
        "routes.py": NOTE.format("A function for each route under `/v1` but the export of a user.")
        + Routes(document).text(),
    }
    return {name: tidy(name, text) for name, text in texts.items()}


def tidy(name: str, text: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--fix", "--quiet", "--select", "F401,I,UP037"], ["format"]):
        options = ["--stdin-filename", str(PACKAGE / name), "-"]
        run = subprocess.run(
            [*ruff, *command, *options], input=text, stdout=subprocess.PIPE, text=True, check=True
        )
        text = run.stdout
    return text


if __name__ == "__main__":
    for name, text in generate(json.loads(OPENAPI.read_text())).items():
        (PACKAGE / name).write_text(text)
