"""HTML in which nothing but what this package wrote is active: every other text is escaped."""

from __future__ import annotations

import html

from query_mutator.base.terminal import printable

LONGEST_TEXT = 1200
LONGEST_NAME = 60


class Markup(str):
    """Text that is HTML already; any other text is escaped where it is put into an element."""

    __slots__ = ()


Child = str | None


def plain(text: object, limit: int = LONGEST_TEXT) -> str:
    """Text of a model, a dataset or a file name without what could disturb, bounded in length.

    Line breaks stay; control characters and those that turn the direction of writing go.

    >>> plain("a\\x1b[31m\\u202eb\\r\\nc")
    'a[31mb\\nc'
    >>> plain("x" * 50, limit=10)
    'xxxxxxxxxx… (40 more characters)'
    """
    shown = str(text)
    more = len(shown) - limit
    lines = shown[:limit].replace("\r\n", "\n").split("\n")
    shown = "\n".join(printable(line) for line in lines)
    return f"{shown}… ({more:,} more characters)" if more > 0 else shown


def name(text: object, limit: int = LONGEST_NAME) -> str:
    """A name on one line, cut with an ellipsis.

    >>> name("a\\nb"), name("abcdef", 4)
    ('a b', 'abc…')
    """
    shown = " ".join(printable(str(text)[: 4 * limit]).split())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def escaped(text: str) -> Markup:
    """The one place where text becomes HTML."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(plain(text, 10 * LONGEST_TEXT), quote=True))


def element(tag: str, *children: Child, **attributes: object) -> Markup:
    """An element; children that are not `Markup` are escaped, None and False are left out.

    >>> element("p", "a < b", element("br"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b<br></p>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """The children one after the other, escaped where they are not HTML already."""
    return Markup("".join(escaped(child) for child in children if child is not None))


def breakable(text: str) -> Markup:
    """A name that may go on in the next line after each of its underscores.

    >>> breakable("step_by_step")
    'step_<wbr>by_<wbr>step'
    """
    first, *rest = text.split("_")
    return join(first, *(part for word in rest for part in ("_", element("wbr"), word)))


_VOID = {"br", "wbr", "meta", "link"}


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    shown = key.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escaped(str(value))}"'
