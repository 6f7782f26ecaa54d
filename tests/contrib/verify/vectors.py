"""The test vectors of contrib/verify, as the verifiers are given them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parents[3] / "contrib" / "verify"
PROVEN = "proven"


class Vector(NamedTuple):
    """One vector. Keys are as an auditor gives them: never those of the bundle."""

    name: str
    bundle: dict[str, Any]
    origin_key: str
    receipt_keys: bytes | None
    witness_keys: tuple[str, ...]
    operator_jkts: tuple[str, ...]
    expected: str

    @property
    def data(self) -> bytes:
        """The bundle's file."""
        return json.dumps(self.bundle).encode()


def read(path: Path) -> Vector:
    fields = json.loads(path.read_text(encoding="utf-8"))
    receipt_keys = json.dumps(fields["receipt_keys"]).encode() if "receipt_keys" in fields else None
    witness_keys = tuple(fields.get("witness_keys", ()))
    return Vector(
        fields["name"], fields["bundle"], fields["origin_key"], receipt_keys, witness_keys,
        tuple(fields.get("operator_jkts", ())), fields["expected"],
    )  # fmt: skip


def named(name: str) -> Vector:
    return read(FOLDER / "vectors" / f"{name}.json")


ALL = [read(path) for path in sorted((FOLDER / "vectors").glob("*.json"))]
