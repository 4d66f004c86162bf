"""The API's manual at /docs: plain HTML made from the OpenAPI document, without files from other hosts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

from .wire.bodies import JSON
from .wire.problems import KINDS, Kind

Row: TypeAlias = tuple[str, str, str]
"""Name, type as HTML, and meaning."""

JsonObject: TypeAlias = Mapping[str, Any]
"""A part of the OpenAPI document, such as an operation or a schema."""

Operations: TypeAlias = Sequence[tuple[str, str, JsonObject]]
"""Method, path and the OpenAPI object of the operation."""

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
<nav aria-label="Operations">
{contents}
</nav>
{operations}
<h2>Objects</h2>
{objects}
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


def manual_page(document: JsonObject) -> str:
    """Return the manual of the API that an OpenAPI document describes, as an HTML page."""
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return PAGE.format(
        title=escape(document["info"]["title"]),
        description=_prose(document["info"]["description"]),
        contents="\n".join(_operation_links(tag, operations) for tag in _tags(operations)),
        operations="\n".join(_operation(*operation) for operation in operations),
        objects="\n".join(_object(name, schema) for name, schema in document["components"]["schemas"].items()),
        problems="\n".join(map(_problem, KINDS)),
    )


def _tags(operations: Operations) -> list[str]:
    return list(dict.fromkeys(operation["tags"][0] for _, _, operation in operations))


def _operation_links(tag: str, operations: Operations) -> str:
    """Return the heading of a tag and the links to its operations."""
    links = "\n".join(
        f'<li><a href="#{operation["operationId"]}"><code>{method.upper()} {escape(path)}</code></a> '
        f"{escape(operation['summary'])}"
        for method, path, operation in operations
        if operation["tags"][0] == tag
    )
    return f"<h2>{escape(tag)}</h2>\n<ul>\n{links}\n</ul>"


def _operation(method: str, path: str, operation: JsonObject) -> str:
    summary = f"{operation['summary']}.".replace("?.", "?")
    parts = [
        f'<section id="{operation["operationId"]}">'
        f"<h2><code>{method.upper()} {escape(path)}</code></h2>\n"
        f"<p><strong>{escape(summary)}</strong> {_prose(operation.get('description', ''))}</p>\n",
        _table("Parameters", [_parameter(each) for each in operation.get("parameters", [])]),
        *_contents("Body", operation.get("requestBody", {})),
    ]
    problems = []
    for status, response in operation["responses"].items():
        if status < "400":
            parts += _contents("Answer" if status == "200" else f"Answer {status}", response)
        else:
            problems.append(f"{status} {escape(response['description'])}")
    parts.append(f"<p>Problems: {', '.join(problems) or 'none'}.</p></section>")
    return "".join(parts)


def _contents(title: str, described: JsonObject) -> Iterator[str]:
    """Yield the HTML of each media type of a request body or a response."""
    contents = described.get("content", {})
    if not contents and described.get("description"):
        yield f"<p>{title}: {_prose(described['description'])}.</p>\n"
    for media_type, content in contents.items():
        schema, example = content.get("schema", {}), str(content.get("example", "")).strip()
        if "properties" in schema:
            yield _table(title, _members(schema))
        elif media_type == JSON:
            yield f"<p>{title}: {_type(schema)}.</p>\n"
        else:
            yield f"<p>{title} as <code>{escape(media_type)}</code>"
            yield f", for example:</p>\n<pre>{escape(example)}</pre>\n" if example else ".</p>\n"


def _object(name: str, schema: JsonObject) -> str:
    description = _prose(schema.get("description", ""))
    examples = "".join(f"<pre>{escape(json.dumps(each))}</pre>\n" for each in schema.get("examples", []))
    return (
        f'<section><h3 id="{name}">{name}</h3>\n<p>{description}</p>\n{examples}'
        f"{_table('Members', _members(schema))}</section>"
    )


def _parameter(parameter: JsonObject) -> Row:
    schema = parameter["schema"]
    options = [option for option in schema.get("anyOf", []) if option.get("type") != "null"]
    schema = {**schema, **options[0]} if len(options) == 1 else schema
    limits = [" or ".join(map(str, schema["enum"]))] if "enum" in schema else []
    limits += [f"{schema['minimum']} to {schema['maximum']}"] if "maximum" in schema else []
    limits += [f"default {schema['default']}"] if schema.get("default") else []
    if parameter.get("required"):
        limits.append("required")
    elif schema.get("type") == "array":
        limits.append("may be repeated")
    return parameter["name"], escape(", ".join(limits)), parameter.get("description", "")


def _members(schema: JsonObject) -> list[Row]:
    return [(name, _type(member), _meaning(member)) for name, member in schema.get("properties", {}).items()]


def _meaning(member: JsonObject) -> str:
    examples = member.get("examples", [])
    if member.get("description") or not examples:
        return str(member.get("description", ""))
    example = examples[0]
    return f"For example `{', '.join(map(str, example)) if isinstance(example, list) else example}`"


def _type(schema: JsonObject) -> str:
    """Return the type of a value as HTML; an object is a link to its members."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f'<a href="#{name}">{name}</a>'
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(map(_type, options)))
    if "enum" in schema or "const" in schema:
        return escape(" or ".join(map(str, schema.get("enum", [schema.get("const")]))))
    kind = escape(str(schema.get("format") or schema.get("type", "any value")))
    return f"{kind} of {_type(schema['items'])}" if kind == "array" and schema.get("items") else kind


def _table(title: str, rows: list[Row]) -> str:
    if not rows:
        return ""
    cells = "\n".join(
        f"<tr><td><code>{escape(name)}</code><td>{kind}<td>{_prose(meaning)}" for name, kind, meaning in rows
    )
    return f'<div class="scroll"><table><caption>{title}</caption>\n{cells}\n</table></div>\n'


def _problem(kind: Kind) -> str:
    return (
        f'<dt id="{kind.slug}"><code>{kind.slug}</code> · {kind.status} {escape(kind.title)}</dt>'
        f"<dd>{_prose(kind.meaning)}</dd>"
    )


def _prose(text: str) -> str:
    """Return escaped text in which `words in backticks` become code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if position % 2 else part for position, part in enumerate(parts))
