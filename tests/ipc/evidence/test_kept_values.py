"""Kept values: what is read of a request, what is shown of a masked one, and the line that tells a call."""

import hashlib
from typing import Any

import pytest

from ipc.evidence.kept_values import (
    KeptRules,
    KeptValue,
    KeptValues,
    commitment,
    is_kept_text,
    summary_of,
    summary_text,
    values_of,
)

REQUEST: dict[str, Any] = {
    "amount_cents": 100.0, "invoice": {"currency": "EUR"}, "iban": "DE89370400440532013000", "pin": "1234567",
    "note": "x" * 1023, "tags": ["a"], "is_urgent": True,
}  # fmt: skip


def test_scalars_are_kept_in_canonical_form_and_others_are_left_out() -> None:
    rules = KeptRules(("/amount_cents", "/invoice/currency", "/is_urgent", "/tags", "/invoice", "/none", "/note"))
    kept = values_of(rules, REQUEST)
    assert kept == KeptValues(
        (KeptValue("/amount_cents", "100"), KeptValue("/invoice/currency", '"EUR"'), KeptValue("/is_urgent", "true"))
    )


def test_without_rules_nothing_is_kept() -> None:
    assert values_of(None, REQUEST) is None


def test_a_masked_text_keeps_its_last_four_characters_if_it_has_at_least_eight() -> None:
    kept = values_of(KeptRules(mask=("/iban", "/pin", "/amount_cents")), REQUEST)
    assert kept is not None
    assert [(one.text, one.kind) for one in kept.values] == [('"3000"', "masked"), ('""', "masked"), ('""', "masked")]


def test_a_commitment_is_the_hash_of_salt_and_value() -> None:
    salt = bytes(range(16))
    assert commitment(salt, b'"EUR"') == "sha256:" + hashlib.sha256(salt + b'"EUR"').hexdigest()


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("{amount_cents} {invoice/currency}", {"/amount_cents": 100, "/invoice/currency": "EUR"}, "100 EUR"),
        ("for {id}", {}, "for -"),
        ("{id}", {"/id": "a\u202eb\n"}, "a\\u202eb\\u000a"),
        ("{id}", {"/id": "x" * 300}, "x" * 255 + "…"),
        ("{id}", {"/id": "{other}", "/other": "1"}, "{other}"),
        (None, {}, None),
    ],
)
def test_a_summary_is_one_bounded_line_of_visible_characters(
    template: str | None, values: dict[str, Any], text: str | None
) -> None:
    assert summary_text(template, values) == text


def test_a_summary_of_erased_values_says_erased() -> None:
    assert summary_text("{id}", {}, is_whole=False) == "erased"


def test_the_summary_of_a_call_is_made_from_its_values() -> None:
    assert summary_of(KeptValues((KeptValue("/a", '"x"'), KeptValue("/n", "1.5")), "{a} {n}")) == "x 1.5"


@pytest.mark.parametrize(
    "value", ["", "a\u2028b", True, 0, -3, 2**53 - 1, 0.5, -0.0, 1.0, 1e16, -1e20, 1e21, 5e-324, 1.7976931348623157e308]
)
def test_each_value_that_a_front_reads_is_a_text_that_the_notary_keeps(value: Any) -> None:
    for rules in (KeptRules(keep=("/a",)), KeptRules(mask=("/a",))):
        kept = values_of(rules, {"a": value})
        assert kept is not None
        assert [is_kept_text(one.text) for one in kept.values] == [True]
