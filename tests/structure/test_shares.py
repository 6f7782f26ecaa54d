"""Which tests are slow, which process runs which, and how many examples are tried: each is declared in one place."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
OWN_NUMBERS = {"support/properties.py", "integration/test_schemathesis.py", "structure/test_shares.py"}
"""Schemathesis tries three requests by endpoint and field, since operators' rates let no more through in a minute."""


def test_no_property_has_a_number_of_examples_of_its_own() -> None:
    named = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if "max_examples" in path.read_text()}
    assert named == OWN_NUMBERS
