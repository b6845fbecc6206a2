"""A table comes in: from a file or from memory, with its kinds, its missing cells and its target."""

from __future__ import annotations

from .columns import Column
from .encoder import TableEncoder
from .frames import as_table
from .penguins import load_penguins
from .readers import read_table
from .table import Table

__all__ = ["Column", "Table", "TableEncoder", "as_table", "load_penguins", "read_table"]
