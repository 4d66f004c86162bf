"""Company references in an address, whatever they hold."""

from starlette.convertors import PathConvertor, register_url_convertor


class AnyPath(PathConvertor):
    """Starlette's `path`, and line breaks: it would find no route for `/companies/a%0Ab`."""

    regex = "(?s:.*)"


def take_line_breaks_in_paths() -> None:
    """From now on `{name:path}` of a route takes a line break too; the reference is refused then as any other."""
    register_url_convertor("path", AnyPath())
