"""The API's manual at /docs, written from the OpenAPI document: plain HTML, nothing from other hosts."""

from collections.abc import Iterator, Mapping
from html import escape
from itertools import chain
from typing import Any, TypeAlias

from .wire.problems import KINDS, Kind

Row: TypeAlias = tuple[str, str, str]
Schema: TypeAlias = Mapping[str, Any]

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API manual · {title}</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
</head>
<body class="manual">
<header class="top">
  <a class="brand" href="/">{title}</a>
  <nav><a href="/">Search</a> <a href="/openapi.json">OpenAPI</a></nav>
</header>
<main>
<h1>API manual</h1>
<p class="lead">{description}</p>
{operations}
<h2>Problems</h2>
<p>Errors are <code>application/problem+json</code>. <code>type</code> names one of these; <code>detail</code> says what
went wrong this time.</p>
<dl class="problems">
{problems}
</dl>
</main>
</body>
</html>
"""


def manual_page(document: Mapping[str, Any]) -> str:
    """The manual of the API that an OpenAPI document describes, as an HTML page."""
    schemas = document["components"]["schemas"]
    operations = (
        _operation(method, path, operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return PAGE.format(
        title=escape(document["info"]["title"]),
        description=escape(document["info"]["description"]),
        operations="\n".join(operations),
        problems="\n".join(map(_problem, KINDS)),
    )


def _operation(method: str, path: str, operation: Schema, schemas: Schema) -> str:
    parts = [
        f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>\n"
        f"<p><strong>{escape(operation['summary'])}.</strong> {_prose(operation.get('description', ''))}</p>\n",
        _table("Parameters", [_parameter(each) for each in operation.get("parameters", [])]),
        *_contents("Body", operation.get("requestBody", {}), schemas),
    ]
    for status, response in _answers(operation):
        parts += _contents("Answer" if status == "200" else f"Answer {status}", response, schemas)
    parts.append(f"<p>Problems: {', '.join(_problems(operation)) or 'none'}.</p></section>")
    return "".join(parts)


def _contents(title: str, described: Schema, schemas: Schema) -> Iterator[str]:
    """What a body or an answer holds: a table of members, or for what has none (CSV, lines) its media type."""
    contents = described.get("content", {})
    if not contents and described.get("description"):
        yield f"<p>{title}: {_prose(described['description'])}.</p>\n"
    for media_type, content in contents.items():
        rows = list(_members(content.get("schema", {}), schemas))
        if rows:
            yield _table(title, rows)
        else:
            example = str(content.get("example", "")).strip()
            yield f"<p>{title} as <code>{escape(media_type)}</code>"
            yield f", for example:</p>\n<pre>{escape(example)}</pre>\n" if example else ".</p>\n"


def _parameter(parameter: Schema) -> Row:
    schema = _value(parameter["schema"])
    limits = [" or ".join(map(str, schema["enum"]))] if "enum" in schema else []
    limits += [f"{schema['minimum']} to {schema['maximum']}"] if "maximum" in schema else []
    limits += [f"default {schema['default']}"] if schema.get("default") else []
    limits += (
        ["required"] if parameter.get("required") else ["may be repeated"] if schema.get("type") == "array" else []
    )
    return parameter["name"], ", ".join(limits), parameter.get("description", "")


def _members(schema: Schema, schemas: Schema) -> Iterator[Row]:
    """Name, type and meaning of every member of an object, those of inner objects as `outer.inner`."""
    described: dict[str, str] = {}
    known = {**schemas, **schema.get("$defs", {})}

    def walk(described_object: Schema, prefix: str) -> Iterator[Row]:
        for name, member in described_object.get("properties", {}).items():
            inner = _value(member)
            listed = inner.get("type") == "array"
            inner = _value(inner.get("items", {})) if listed else inner
            path = f"{prefix}{name}[]" if listed else f"{prefix}{name}"
            names = _schema_names(inner)
            if not names:
                yield f"{prefix}{name}", _type(member), _meaning(member)
            elif names in described:
                yield path, "object", f"The same members as `{described[names]}`."
            else:
                described[names] = path
                for each in names.split():
                    yield from walk(known[each], f"{path}.")

    names = _schema_names(schema)
    return chain.from_iterable(walk(known[each], "") for each in names.split()) if names else walk(schema, "")


def _value(schema: Schema) -> Schema:
    """What a value is where it is not null."""
    options = [option for option in schema.get("anyOf", []) if option.get("type") != "null"]
    return {**schema, **options[0], "anyOf": []} if len(options) == 1 else schema


def _schema_names(schema: Schema) -> str:
    """The names of the objects that a value may be, by blanks; empty if it is no object with members of its own."""
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return " ".join(str(option["$ref"]).rsplit("/", 1)[-1] for option in options if "$ref" in option)


def _meaning(member: Schema) -> str:
    examples = member.get("examples", [])
    if member.get("description") or not examples:
        return str(member.get("description", ""))
    example = examples[0]
    return f"For example `{', '.join(map(str, example)) if isinstance(example, list) else example}`"


def _type(member: Schema) -> str:
    options = member.get("anyOf") or member.get("oneOf")
    if options:
        return " or ".join(dict.fromkeys(map(_type, options)))
    if "enum" in member or "const" in member:
        return " or ".join(map(str, member.get("enum", [member.get("const")])))
    kind = str(member.get("format") or member.get("type", "any value"))
    return f"{kind} of {_type(member['items'])}" if kind == "array" and member.get("items") else kind


def _answers(operation: Schema) -> list[tuple[str, Schema]]:
    return [(status, each) for status, each in operation["responses"].items() if status < "400"]


def _problems(operation: Schema) -> list[str]:
    return [
        f"{status} {escape(response['description'])}"
        for status, response in operation["responses"].items()
        if status >= "400"
    ]


def _table(title: str, rows: list[Row]) -> str:
    if not rows:
        return ""
    cells = "\n".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(kind)}<td>{_prose(meaning)}" for name, kind, meaning in rows
    )
    return f'<div class="scroll"><table><caption>{title}</caption>\n{cells}\n</table></div>\n'


def _problem(kind: Kind) -> str:
    return (
        f'<dt id="{kind.slug}"><code>{kind.slug}</code> · {kind.status} {escape(kind.title)}</dt>'
        f"<dd>{_prose(kind.meaning)}</dd>"
    )


def _prose(text: str) -> str:
    """Escaped text in which `words in backticks` become code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if position % 2 else part for position, part in enumerate(parts))
