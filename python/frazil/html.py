"""Answers as HTML for notebooks: a fragment that loads nothing, has one root and is well-formed XML."""

import re
from typing import Any
from xml.sax.saxutils import escape

# Pictures of the programs turn dark where the reader's system does (prefers-color-scheme); Canvas turns with them.
FRAME = "color-scheme:light dark;background:Canvas;color:CanvasText;padding:8px;overflow-x:auto;font:13px system-ui,sans-serif"
TABLE = "font:inherit;border-collapse:collapse;margin:8px 0;font-variant-numeric:tabular-nums"
CELL = "padding:2px 12px 2px 0;text-align:{};border-bottom:1px solid #8884;white-space:nowrap"


def make_page(head: str, svg: str, titles: list, rows: list, notes: list) -> str:
    """A heading, a picture (empty: none), a table and notes below it."""
    parts = [f'<div style="font-weight:600;margin-bottom:6px">{escape(head)}</div>', svg]
    if rows:
        parts.append(_table(titles, rows))
    parts += [f'<div style="opacity:.75">{escape(note)}</div>' for note in notes]
    return f'<div style="{FRAME}">' + "".join(parts) + "</div>"


def _table(titles: list, rows: list) -> str:
    sides = ["right" if all(_is_number(row[column]) for row in rows) else "left" for column in range(len(titles))]
    body = "".join(_row("td", row, sides) for row in rows)
    return f'<table style="{TABLE}"><thead>{_row("th", titles, sides)}</thead><tbody>{body}</tbody></table>'


def _is_number(cell: Any) -> bool:
    """Whether a cell is a number, with a unit or without, or `-` for none."""
    return bool(re.fullmatch(r"-|-?[\d.]+( ?[A-Za-z%]+)?", str(cell)))


def _row(tag: str, cells: list, sides: list) -> str:
    return "<tr>" + "".join(f'<{tag} style="{CELL.format(side)}">{escape(str(cell))}</{tag}>' for cell, side in zip(cells, sides)) + "</tr>"
