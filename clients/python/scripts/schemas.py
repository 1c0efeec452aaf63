"""Python types from the schemas of an OpenAPI document: TypedDicts, unions and aliases."""

import json
import keyword
from typing import Any

PRIMITIVES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}

Json = dict[str, Any]


class Schemas:
    def __init__(self, document: Json) -> None:
        self.schemas: Json = dict(document["components"]["schemas"])
        for name, schema in document["components"]["schemas"].items():
            # The entries of a page are inline: give them the name that the page has them by.
            page, _, entry = name.partition("_")
            if page == "PageOut":
                self.schemas.setdefault(entry, schema["properties"]["items"]["items"])

    def resolve(self, schema: Json) -> Json:
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def variants(self, schema: Json) -> list[tuple[Json, set[str]]]:
        """The shapes that an object may have: its properties, and which of them are required."""
        schema = self.resolve(schema)
        if "oneOf" in schema:
            return [shape for part in schema["oneOf"] for shape in self.variants(part)]
        shapes: list[tuple[Json, set[str]]] = [({}, set())]
        for part in schema.get("allOf", []):
            added = self.variants(part)
            shapes = [({**a, **b}, r | s) for a, r in shapes for b, s in added]
        own, required = schema.get("properties", {}), set(schema.get("required", []))
        return [({**properties, **own}, names | required) for properties, names in shapes]

    def type_of(self, schema: Json, is_input: bool, prefix: str = "") -> str:
        """The annotation of a value. Requests take ids as numbers, too, and any sequence."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            is_id = name.endswith("Id") or name in ("UserOrMe", "SenderIn")
            is_text = name in ("ClientId", "OperationId")
            return prefix + ("Id" if is_input and is_id and not is_text else name)
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
        if isinstance(schema.get("type"), list):
            kinds = [{**schema, "type": kind} for kind in schema["type"] if kind != "null"]
            return " | ".join([*(self.type_of(k, is_input, prefix) for k in kinds), "None"])
        if "oneOf" in schema:
            return " | ".join(self.type_of(part, is_input, prefix) for part in schema["oneOf"])
        kind = schema.get("type")
        if kind == "array":
            inner = self.type_of(schema["items"], is_input, prefix)
            return f"{'Sequence' if is_input else 'list'}[{inner}]"
        if kind == "object" and "properties" not in schema:
            inner = self.type_of(schema.get("additionalProperties", {}), is_input, prefix)
            return f"{'Mapping' if is_input else 'dict'}[str, {inner}]"
        if kind == "object" or "allOf" in schema:
            return prefix + self.named(schema)
        if kind == "null":
            return "None"
        return "Any" if kind is None else PRIMITIVES[kind]

    def named(self, schema: Json) -> str:
        """An inline object is the copy of a named schema, which it is called by."""
        shapes = [set(properties) for properties, _ in self.variants(schema)]
        for name, other in self.schemas.items():
            if name.endswith("Out") and [set(p) for p, _ in self.variants(other)] == shapes:
                return name
        raise SystemExit(f"an inline object without a named schema: {schema}")

    def typed_dict(self, name: str, properties: Json, required: set[str], doc: str) -> str:
        is_input = name.endswith("In")
        fields = {
            field: annotation if field in required else f"NotRequired[{annotation}]"
            for field, value in properties.items()
            for annotation in [self.type_of(value, is_input)]
        }
        if any(keyword.iskeyword(field) for field in fields):
            items = ", ".join(f'"{field}": "{annotation}"' for field, annotation in fields.items())
            return f'{name} = TypedDict("{name}", {{{items}}})\n'
        lines = [f"    {field}: {annotation}" for field, annotation in fields.items()]
        return "\n".join([f"class {name}(TypedDict):", f'    """{doc}"""\n', *lines]) + "\n"

    def define(self, name: str, schema: Json) -> None:
        """Aliases are values, so that annotations can be evaluated: each after what it names."""
        doc = " ".join(schema.get("description", name).split()).split(". ")[0].rstrip(".") + "."
        is_empty = schema.get("additionalProperties") is False
        if not (is_empty or any(field in schema for field in ("allOf", "oneOf", "properties"))):
            self.aliases.append(f"{name}: TypeAlias = {self.type_of(schema, False)}\n")
            return
        if "oneOf" in schema and all("$ref" in part for part in schema["oneOf"]):
            self.unions.append(f"{name}: TypeAlias = {self.type_of(schema, False)}\n")
            return
        shapes = self.variants(schema)
        if len(shapes) == 1:
            self.classes.append(self.typed_dict(name, *shapes[0], doc))
            return
        tags = [self.tag(properties) for properties, _ in shapes]
        names = [name + "".join(part.title() for part in tag.split("_")) for tag in tags]
        for variant, shape in zip(names, shapes, strict=True):
            self.classes.append(self.typed_dict(variant, *shape, doc))
        self.unions.append(f"{name}: TypeAlias = {' | '.join(names)}\n")

    @staticmethod
    def tag(properties: Json) -> str:
        """The one value of the field that tells the shapes of a union apart."""
        tag: str
        (tag,) = [of["enum"][0] for of in properties.values() if len(of.get("enum", [])) == 1]
        return tag

    def text(self) -> str:
        self.aliases: list[str] = ["Id: TypeAlias = str | int\n"]
        self.classes: list[str] = []
        self.unions: list[str] = []
        for name, schema in sorted(self.schemas.items()):
            self.define(name, schema)
        head = "from __future__ import annotations\n\n"
        head += "from collections.abc import Mapping, Sequence\n"
        head += "from typing import Any, Literal, TypeAlias\n\n"
        head += "from typing_extensions import NotRequired, TypedDict\n\n"
        head += "# Answers have ids as strings. Requests take numbers, too."
        return "\n".join([head, *self.aliases, *self.classes, *self.unions])
