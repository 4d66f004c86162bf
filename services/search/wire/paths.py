"""Company references with line breaks in the path of a URL."""

from starlette.convertors import PathConvertor, register_url_convertor


class AnyPath(PathConvertor):
    """Starlette's `path` convertor, which also matches line breaks: without it, `/companies/a%0Ab` has no route."""

    regex = "(?s:.*)"


def match_line_breaks_in_paths() -> None:
    """Let `{name:path}` in routes match line breaks; the route then refuses the reference like any invalid one."""
    register_url_convertor("path", AnyPath())
