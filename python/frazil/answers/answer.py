"""What all answers have: the JSON that they were made of, and a form for notebooks."""

from dataclasses import dataclass
from typing import Optional

from ..html import make_page
from ..picture import Picture
from .from_json import Part, optional


@dataclass(frozen=True, kw_only=True)
class Answer(Part):
    """The answer of a program. In a notebook it shows as a picture of the step, where it is about one, and a table."""

    picture: Optional[Picture] = optional(repr=False, compare=False)

    def _head(self) -> str:
        """The answer in one line."""
        return type(self).__name__

    def _table(self) -> tuple:
        """Titles of columns, and rows."""
        return [], []

    def _notes(self) -> list:
        """Sentences that stand below the table."""
        return []

    def _repr_html_(self) -> str:
        titles, rows = self._table()
        svg, notes = self.picture.draw() if self.picture else ("", [])
        return make_page(self._head(), svg, titles, rows, [*self._notes(), *notes])
