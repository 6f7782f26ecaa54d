"""Every row of the table "What is found in a bundle" of docs/evidence.md, tried with both verifiers.

The rows name what was changed, by a stranger or by a gateway that signs what it likes; the vectors are such bundles.
"""

import json
from pathlib import Path

import pytest
from gateway_client import verify_bundle

from contrib.verify.oracle import OPERATOR_KEYS, operator_jkt
from tests.contrib.verify.command import judge
from tests.contrib.verify.vectors import PROVEN, Vector, named
from tests.notary.running import ROOT

OPERATORS = tuple(operator_jkt(OPERATOR_KEYS[name]) for name in ("alice", "bob"))
TABLE = (
    (ROOT / "docs" / "evidence.md").read_text().partition("\n## What is found in a bundle\n")[2].partition("\n## ")[0]
)
ROWS = {
    row[0]: tuple(row[1:])
    for line in TABLE.splitlines()
    if len(row := [cell.strip() for cell in line.strip("|").split("|")]) == 3 and row[1] in ("found", "not found")
}
"""The change -> the verdict without the operators' keys, and with them."""
VECTORS = {
    "a byte of the receipt, the event or the intent": ("receipt-exchanged", "edited-event", "edited-intent"),
    "a proof, or the place of an entry": ("proof-of-another-order", "proof-too-short", "wrong-index"),
    "the checkpoint, or its signature": ("note-with-edited-size", "note-with-edited-time", "note-by-a-stranger"),
    "a kept value, a masked one too: the value, its salt or its pointer": (
        "kept-value-changed", "kept-masked-value-changed", "kept-salt-changed", "kept-salts-exchanged",
        "kept-pointer-changed", "kept-flag-as-a-number",
    ),
    "a kept value that is left out": ("kept-row-missing", "kept-values-missing"),
    "a kept value that is added, or stands there twice": ("kept-row-of-another-call", "kept-row-twice"),
    "an erasure: changed, left out, of other values, or another event in its place": (
        "kept-value-erased-in-an-edited-event", "kept-row-whose-erasure-is-missing",
        "kept-row-missing-and-another-erased", "kept-value-erased-by-another-kind-of-event",
        "kept-value-erased-at-another-place",
    ),
    "by the gateway, an approval of a quorum: left out, doubled, unsigned, or signed for something else": (
        "quorum-too-small", "quorum-of-one-operator", "quorum-with-an-unsigned-approval",
        "quorum-with-the-signature-of-another", "quorum-of-another-plan", "quorum-of-another-gateway",
        "quorum-of-a-denial", "quorum-outside-its-group",
    ),
    "by the gateway, an approval of a quorum that it signed with a key of its own": ("quorum-of-an-unknown-operator",),
    "by the gateway, all signatures of a quorum left out": ("quorum-not-signed-and-operators-known",),
    "by the gateway, the quorum lowered, or an operator's groups": ("quorum-lowered", "quorum-of-another-group"),
}  # fmt: skip
CASES = [
    (row, name, jkts, verdict)
    for row, names in VECTORS.items()
    for name in names
    for jkts, verdict in zip(((), OPERATORS), ROWS.get(row, ("no such row",) * 2), strict=True)
]
IDS = [f"{name}-{'operators known' if jkts else 'no operator known'}" for _, name, jkts, _ in CASES]


def given(name: str, jkts: tuple[str, ...]) -> Vector:
    """A vector as an auditor judges it who has these operators' keys, where its call had an approval."""
    vector = named(name)
    return vector._replace(operator_jkts=jkts if name.startswith("quorum-") else ())


@pytest.mark.parametrize(("row", "name", "jkts", "verdict"), CASES, ids=IDS)
def test_the_library_finds_what_the_document_says(row: str, name: str, jkts: tuple[str, ...], verdict: str) -> None:
    vector = given(name, jkts)
    told = verify_bundle(
        vector.data, origin_keys=vector.origin_key, receipt_keys=json.loads(vector.receipt_keys or b"{}"),
        operator_keys=vector.operator_jkts,
    )  # fmt: skip
    assert ("not found" if told.is_proven else "found") == verdict, (row, told.sentence)


@pytest.mark.parametrize(("row", "name", "jkts", "verdict"), CASES, ids=IDS)
def test_the_verifier_in_go_finds_what_the_document_says(
    program: list[str | Path], tmp_path: Path, row: str, name: str, jkts: tuple[str, ...], verdict: str
) -> None:
    told = judge(program, given(name, jkts), tmp_path)
    assert ("not found" if told.reason == PROVEN else "found") == verdict, (row, told.output)


def test_each_row_of_the_document_is_tried() -> None:
    assert set(ROWS) == set(VECTORS)
