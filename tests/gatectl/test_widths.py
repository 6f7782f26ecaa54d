"""Tables and facts on terminals of several widths: no line is broken by the terminal, and nothing is lost."""

import re
import sys

import pytest
from gateway_client import Held
from gateway_client.cli.display.tables import flowing, labelled, slices, stacked, table
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.gatectl import Gatectl
from tests.support.gateway import Gateway

COMMANDS = ("approvals list", "actions list", "audit events", "doctor", "status", "context show", "policy show",
            "sessions list")  # fmt: skip
EACH = f"from gateway_client.cli.main import run\nfor one in {COMMANDS!r}:\n    run(one.split())"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
UNBROKEN = re.compile(r"\s*(\S+ )?[^\s]*[/_:][^\s]*")
"""Values that people copy whole: a path, a URL, a hash, an identifier, with its name before it."""


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_wider_than_the_terminal(gatectl: Gatectl, held: Held, columns: int) -> None:
    ran = gatectl.on_terminal("-c", EACH, columns=columns, program=[sys.executable])
    lines = COLOURS.sub("", ran.out).splitlines()
    wide = [one for one in lines if cell_len(one) > columns and not UNBROKEN.fullmatch(one)]
    assert not wide
    assert len(lines) > 40
    text = " ".join(ran.out.split())
    assert (held.approval_id in text) == (columns < 100)
    assert held.approval_id[-8:] in text
    assert "Writes a text to a file, replacing what was there." in text or columns >= 100


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plan_a_tail_and_a_watch_are_never_wider_than_the_terminal(
    gatectl: Gatectl, held: Held, columns: int
) -> None:  # fmt: skip
    asked = (f"approvals show {held.approval_id}", "audit tail --for 0", "approvals watch --for 0")
    each = f"from gateway_client.cli.main import run\nfor one in {asked!r}:\n    run(one.split())"
    ran = gatectl.on_terminal("-c", each, columns=columns, program=[sys.executable])
    lines = COLOURS.sub("", ran.out).splitlines()
    assert not [one for one in lines if cell_len(one) > columns]
    facts = gatectl.done("approvals", "show", held.approval_id, "--json").json
    for whole in ("plan_hash", "shown_hash", "request_hash", "provider_module_digest", "trace_id"):
        assert any(one.rstrip().endswith(facts[whole]) for one in lines), f"{whole} stands on one line"
    assert any(one.endswith(f'gatectl approvals deny {held.approval_id} --reason "…"') for one in lines)
    assert sum("payment_transfer" in one for one in lines) >= 3


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_a_receipt_and_an_action_fit_the_terminal_and_keep_their_hashes_whole(
    gatectl: Gatectl, gate: Gateway, columns: int
) -> None:
    receipt_id = gate.agent().execute("text_digest", {"text": "x"}).json()["receipt_id"]
    asked = (f"receipts show {receipt_id} --verify", "actions show text_digest")
    each = f"from gateway_client.cli.main import run\nfor one in {asked!r}:\n    run(one.split())"
    ran = gatectl.on_terminal("-c", each, columns=columns, program=[sys.executable])
    lines = COLOURS.sub("", ran.out).splitlines()
    assert not [one for one in lines if cell_len(one) > columns]
    receipt = gatectl.done("receipts", "show", receipt_id, "--json").json
    for name in ("plan_hash", "request_hash", "result_hash", "provider_module_digest"):
        assert any(one.endswith(receipt[name]) for one in lines), f"{name} stands on one line"
    assert "Has no effect outside of itself." in " ".join(ran.out.split())


@given(st.text(st.sampled_from("ab 字e\u0301"), max_size=300), st.integers(20, 130), st.sampled_from([14, 26]))
def test_a_text_in_several_lines_is_the_text_and_every_line_fits(text: str, width: int, indent: int) -> None:
    pieces = slices(text, width)
    assert "".join(pieces) == text
    assert all(cell_len(one) <= width for one in pieces)
    lines = labelled("name", text, max(40, width), indent)
    first = lines[0] + " " * (indent - cell_len(lines[0]))
    shown = (
        [one[6:] for one in lines[1:]]
        if lines[0] == "  name"
        else [first[indent:], *(one[indent:] for one in lines[1:])]
    )
    assert "".join(shown).rstrip() == text.rstrip()
    assert first.startswith("  name")
    assert all(one.startswith(" " * 6) for one in lines[1:])
    assert all(cell_len(one) <= max(40, width) for one in lines)
    parts = flowing([text, "end"], width)
    assert "".join("".join(line) for line in parts) == f"{text}end"
    assert all(sum(cell_len(one) + 2 for one in line) <= width + 2 for line in parts)


CELLS = st.lists(st.text(st.sampled_from("ab 字_-"), min_size=1, max_size=60).map(str.strip), min_size=3, max_size=3)


@given(st.lists(CELLS.filter(all), min_size=1, max_size=5), st.sampled_from([80, 100, 120]))
def test_every_cell_is_there_however_it_is_laid_out(rows: list[list[str]], width: int) -> None:
    columns = ("ONE", "TWO", "THREE")
    layout = table(columns, rows, width)
    if layout is not None:
        texts = ["".join(line[at][0] for line in layout) for at in range(3)]
        wanted = ["".join((name, *(row[at] for row in rows))) for at, name in enumerate(columns)]
        assert [one.replace(" ", "") for one in texts] == [one.replace(" ", "") for one in wanted]
        assert all(sum(cells for _, cells in line) + 4 <= width for line in layout)
        return
    for row, lines in zip(rows, stacked(columns, rows, width), strict=True):
        text = "".join(lines).replace(" ", "")
        assert (
            text
            == f"{row[0]}{'two' + row[1] if row[1] != '-' else ''}{'three' + row[2] if row[2] != '-' else ''}".replace(
                " ", ""
            )
        )
        assert all(cell_len(line) <= width for line in lines)
