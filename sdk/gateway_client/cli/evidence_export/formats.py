"""Writes the events of a finished part as JSON lines, CSV (RFC 4180) or Parquet.

Guarantees that a spreadsheet takes no cell of the CSV for a formula. Parquet needs the extra `parquet` (pyarrow).
"""

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from gateway_client.cli.evidence_export.columns import Cell, columns_of, row_of, text_of
from gateway_client.cli.evidence_export.partial import PartialExport
from gateway_client.cli.exits import Failure, ScriptExit

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that spreadsheets run."""
GROUP_ROWS = 10_000


def write_jsonl(part: PartialExport, file: BinaryIO) -> None:
    """One event a line."""
    file.writelines(part.lines())


def write_csv(part: PartialExport, file: BinaryIO) -> None:
    """A line of column names, then one event a line."""
    columns = list(columns_of(part.lines()))
    text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="", write_through=False)
    rows = csv.writer(text, lineterminator="\r\n")
    rows.writerow([_harmless(name) for name in columns])
    for line in part.lines():
        row = row_of(line)
        rows.writerow([_harmless(row.get(name)) for name in columns])
    text.flush()
    text.detach()


def write_parquet(part: PartialExport, file: BinaryIO) -> None:
    """A table in groups of GROUP_ROWS rows."""
    pyarrow, parquet = parquet_library()
    columns = columns_of(part.lines())
    kinds = {"boolean": pyarrow.bool_(), "integer": pyarrow.int64(), "number": pyarrow.float64()}
    schema = pyarrow.schema([(name, kinds.get(kind, pyarrow.string())) for name, kind in columns.items()])
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _groups(part.lines()):
            cells = {name: [_typed(row.get(name), kind) for row in group] for name, kind in columns.items()}
            writer.write_table(pyarrow.table(cells, schema=schema))


def parquet_library() -> tuple[Any, Any]:
    """pyarrow and its module for Parquet. Raises Failure no_pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "pyarrow":
            raise
        mend = "pip install './sdk[parquet]' in a clone of the gateway's repository"
        raise Failure(ScriptExit.USAGE, "no_pyarrow", "the Python package pyarrow is not installed", mend) from None
    return pyarrow, pyarrow.parquet


WRITERS: dict[str, Callable[[PartialExport, BinaryIO], None]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
}


def _harmless(cell: Cell) -> str:
    """SECURITY: agents choose texts of events; a spreadsheet must not run them."""
    text = text_of(cell)
    return f"'{text}" if isinstance(cell, str) and text.startswith(FORMULA) else text


def _typed(cell: Cell, kind: str) -> Cell:
    if cell is None:
        return None
    if kind == "text":
        return text_of(cell).encode("utf-8", "backslashreplace").decode()
    return float(cell) if kind == "number" else cell


def _groups(lines: Iterator[bytes]) -> Iterator[list[dict[str, Cell]]]:
    group: list[dict[str, Cell]] = []
    for line in lines:
        group.append(row_of(line))
        if len(group) == GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group
