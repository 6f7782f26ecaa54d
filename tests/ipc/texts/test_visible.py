"""Text that an agent chose, as a person is shown it: everything can be seen, and nothing looks like something else."""

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from gateway_client.visible import visible as visible_to_clients
from hypothesis import given
from hypothesis import strategies as st

import ipc.texts.visible as module
from ipc.texts.visible import MOST_MARKS, has_looks, in_ascii, visible
from tests.support.front_core import HOLD, front_core

ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4})|U([0-9a-f]{8}))")
HOSTILE = st.text(st.one_of(
    st.characters(), st.sampled_from("\\u01abU \u0301\u0489\u05d0\u0661\u202e\u200d\ufe0f\U000e0041\x01\x7f"),
))  # fmt: skip
VALUES = st.recursive(
    st.one_of(HOSTILE, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(HOSTILE, inner, max_size=3)), max_leaves=6,
)  # fmt: skip


def read_back(shown: Any) -> Any:
    """The value that was shown."""
    if isinstance(shown, str):
        return ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)) if found[1] or found[2] else "\\", shown)
    if isinstance(shown, dict):
        return {read_back(key): read_back(item) for key, item in shown.items()}
    if isinstance(shown, list):
        return [read_back(item) for item in shown]
    return shown


@given(VALUES)
def test_shown_text_can_be_read_back_so_no_two_values_look_alike(value: Any) -> None:
    assert read_back(visible(value)) == value


async def test_an_operator_is_shown_every_member_of_a_request_whose_names_imitate_each_other(tmp_path: Path) -> None:
    order = {"note\u0001": {"pay": 9999}, "note\\u0001": "lunch"}
    async with front_core(tmp_path, workers=0) as core:
        core.policy.answer = HOLD
        _, held = await (await core.agent()).call(body={"n": 1, "order": order})
        _, detail = await core.operate("GET", f"/v1/approvals/{held['approval_id']}")
    assert detail["request"]["order"] == {"note\\u0001": {"pay": 9999}, "note\\\\u0001": "lunch"}
    assert json.loads(detail["request_json"]) == {"n": 1, "order": order}


@given(HOSTILE)
def test_nothing_that_deceives_a_terminal_survives(text: str) -> None:
    for shown in (visible(text), visible_to_clients(text)):
        assert not [one for one in shown if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
        assert not re.search(r"[\u034f\u115f\u1160\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]", shown)


@pytest.mark.parametrize("text", [
    "plain text, 3 of it", "Grüße", "naïve", "e\u0301", "日本語", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc", "Ж",
    "😀", "Việt", "क्षत्रिय",
])  # fmt: skip
def test_text_in_the_scripts_of_people_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == visible_to_clients(text) == text


@pytest.mark.parametrize(("text", "shown"), [
    ("pay\u2800100", "pay\\u2800100"), ("a\u3164b", "a\\u3164b"), ("a\u034fb", "a\\u034fb"), ("\u115f", "\\u115f"),
    ("x\ufe0f", "x\\ufe0f"), ("a\U000e0041", "a\\U000e0041"), ("a\u00a0b", "a\\u00a0b"), ("a\u3000b", "a\\u3000b"),
    ("\u0301x", "\\u0301x"), (" \u0301", " \\u0301"), ("\x01\u0301", "\\u0001\\u0301"),
    ("x" + "\u0301" * (MOST_MARKS + 2), "x" + "\u0301" * MOST_MARKS + "\\u0301" * 2),
    ("to \u05d0\u05d1", "to \\u05d0\\u05d1"), ("\u05d0 12", "\\u05d0 12"), ("\u0661,\u0662", "\\u0661,\\u0662"),
    ("\u05d0,\u05d1", "\\u05d0,\\u05d1"),
    ("pay 1\u03360\u0336", "pay 1\\u03360\\u0336"), ("=\u0338", "=\\u0338"), ("a\u20dd", "a\\u20dd"),
    ("a\u20e5", "a\\u20e5"), ("a\u0489", "a\\u0489"), ("a\u1dfb", "a\\u1dfb"), ("e\u0301\u0338", "e\u0301\\u0338"),
])  # fmt: skip
def test_characters_that_hide_disguise_or_reorder_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == visible_to_clients(text) == shown


@given(HOSTILE.filter(lambda text: "\\" not in text))
def test_clients_show_what_the_gateway_shows(text: str) -> None:
    assert visible_to_clients(text) == visible(text)
    assert visible_to_clients(visible(text)) == visible(text)


@given(VALUES)
def test_a_json_text_in_ascii_means_the_same(value: Any) -> None:
    shown = in_ascii(json.dumps(value, ensure_ascii=False))
    assert shown.isascii()
    assert shown.isprintable()
    assert json.loads(shown) == value


def test_no_text_makes_those_that_follow_be_looked_at_character_by_character(monkeypatch: pytest.MonkeyPatch) -> None:
    ideographs = "".join(map(chr, range(0x4E00, 0x4E00 + 20_500)))
    for text in (ideographs, ideographs[:15_000], ideographs[15_000:] + "".join(map(chr, range(0xAC00, 0xD000)))):
        assert visible(text) == text
    looked_at: list[str] = []

    def noted(one: str) -> bool:
        looked_at.append(one)
        return has_looks(one)

    monkeypatch.setattr(module, "has_looks", noted)
    assert visible("\U00020000" * 1000) == "\U00020000" * 1000
    assert looked_at == ["\U00020000"]
