"""Names that are close to a misspelt one, within bounds."""

import pytest

from frontend.actions.near import MOST, near

NAMES = ["file_write", "http_fetch", "http_post", "payment_transfer", "text_digest"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text_digets", ["text_digest"]), ("textdigest", ["text_digest"]), ("TEXT_DIGEST", []), ("zzz", []),
        ("http_pst", ["http_post"]), ("", []), ("payment_transfe" + "r" * 60, []),
    ],
)  # fmt: skip
def test_a_misspelt_name_finds_the_one_that_was_meant(name: str, expected: list[str]) -> None:
    assert near(name, NAMES) == expected


def test_only_similar_names_are_compared_and_a_few_are_suggested() -> None:
    names = [f"service_{number:03}_send" for number in range(500)]
    suggestions = near("service_499_sned", names)
    assert suggestions[0] == "service_499_send"
    assert len(suggestions) == MOST
