"""The API's manual at /docs, written from the OpenAPI document: plain HTML, nothing from other hosts."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, TypeAlias

from services.search.problems import KINDS, Kind

Row: TypeAlias = tuple[str, str, str]

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
        _operation(path, operation, schemas)
        for path, methods in document["paths"].items()
        for operation in methods.values()
    )
    return PAGE.format(
        title=escape(document["info"]["title"]),
        description=escape(document["info"]["description"]),
        operations="\n".join(operations),
        problems="\n".join(map(_problem, KINDS)),
    )


def _operation(path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    return (
        f"<section><h2><code>GET {escape(path)}</code></h2>\n<p><strong>{escape(operation['summary'])}.</strong> "
        f"{_prose(operation['description'])}</p>\n"
        + _table("Parameters", [_parameter(each) for each in operation.get("parameters", [])])
        + _table("Answer", list(_members(answer, schemas)))
        + f"<p>Problems: {', '.join(_statuses(operation)) or 'none'}.</p></section>"
    )


def _parameter(parameter: Mapping[str, Any]) -> Row:
    schema = parameter["schema"]
    limits = [f"{schema['minimum']} to {schema['maximum']}"] if "maximum" in schema else []
    limits += [f"default {schema['default']}"] if schema.get("default") else []
    limits += ["required"] if parameter.get("required") else ["may be repeated"] if schema["type"] == "array" else []
    return parameter["name"], ", ".join(limits), parameter.get("description", "")


def _members(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[Row]:
    """Name, type and meaning of every member of an object, those of inner objects as `outer.inner`."""
    described: dict[str, str] = {}

    def walk(name_of_schema: str, prefix: str) -> Iterator[Row]:
        for name, member in schemas[name_of_schema]["properties"].items():
            inner = member.get("items", member)
            path = f"{prefix}{name}" if inner is member else f"{prefix}{name}[]"
            inner_name = _schema_name(inner)
            if not inner_name:
                yield f"{prefix}{name}", _type(member), _meaning(member)
            elif inner_name in described:
                yield path, "object", f"The same members as `{described[inner_name]}`."
            else:
                described[inner_name] = path
                yield from walk(inner_name, f"{path}.")

    return walk(_schema_name(schema), "")


def _schema_name(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rsplit("/", 1)[-1]


def _meaning(member: Mapping[str, Any]) -> str:
    examples = member.get("examples", [])
    if member.get("description") or not examples:
        return str(member.get("description", ""))
    example = examples[0]
    return f"For example `{', '.join(example) if isinstance(example, list) else example}`"


def _type(member: Mapping[str, Any]) -> str:
    if "anyOf" in member:
        return " or ".join(_type(option) for option in member["anyOf"])
    kind = str(member.get("format") or member["type"])
    return f"{kind} of {_type(member['items'])}" if kind == "array" else kind


def _statuses(operation: Mapping[str, Any]) -> list[str]:
    return [
        f"{status} {escape(response['description'])}"
        for status, response in operation["responses"].items()
        if not status.startswith("2")
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
