"""The configuration of operators, who approve calls, and of the caps of the calls that wait for them."""

from pathlib import Path

import pytest

from ipc.configuration.quorum import QuorumRule
from supervisor.dev.settings import DevOptions, load_dev
from supervisor.settings.sections.operators import digest_of
from tests.supervisor.settings.parsed import NEEDED
from tests.supervisor.settings.test_config import JKT, KEY, problems_of, settings_of


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ('name = "ada"', "needs exactly one of"),
        (f'name = "ada"\napi_key = "{KEY}"\napi_key_sha256 = "{"0" * 64}"', "needs exactly one of"),
        (f'api_key = "{KEY}"', "name: is missing"),
        ('name = "ada"\napi_key = "key-bob-' + "0" * 32 + '"', "must have the form key-ada-<32"),
        (f'name = "ada"\napi_key_sha256 = "{KEY}"', "64 hexadecimal digits"),
        (f'name = "a/b"\napi_key = "{KEY}"', "must be letters, digits"),
        (f'name = "ada"\ndpop_jkt = "short"\napi_key = "{KEY}"', "RFC 7638 thumbprint"),
        ('name = "ada"\napi_key_file = "/nowhere/key"', "cannot read it: No such file or directory"),
        (f'name = "ada"\napi_key = "{KEY}"\n[[operators]]\nname = "ada"\napi_key_sha256 = "{"1" * 64}"', "twice"),
        (
            f'name = "ada"\napi_key = "{KEY}"\n[[operators]]\nname = "bob"\napi_key_sha256 = "{digest_of(KEY)}"',
            '"bob" and "ada" share one key',
        ),
    ],
)
def test_each_wrong_operator_is_named_with_what_is_wrong_and_without_the_key(rows: str, said: str) -> None:
    problems = problems_of(NEEDED + "[[operators]]\n" + rows)
    assert any(said in problem for problem in problems), problems
    assert not any(KEY in problem or "0" * 32 in problem for problem in problems)


def test_each_operator_that_repeats_another_is_named_once() -> None:
    twice = "".join(f'[[operators]]\nname = "ada"\napi_key_sha256 = "{number:064x}"\n' for number in range(4))
    shared = "".join(f'[[operators]]\nname = "bob{number}"\napi_key_sha256 = "{"f" * 64}"\n' for number in range(4))
    assert [one.partition("  ")[2] for one in problems_of(NEEDED + twice + shared)] == [
        *(f'operators[{index}].name: "ada" is there twice.' for index in (1, 2, 3)),
        *(f'operators[{index}]: "bob{index - 4}" and "bob0" share one key.' for index in (5, 6, 7)),
    ]


def test_signatures_can_not_be_required_of_an_operator_without_a_key() -> None:
    rows = f'[approvals]\nrequire_signature = true\n[[operators]]\nname = "ada"\napi_key = "{KEY}"\n'
    (problem,) = problems_of(NEEDED + rows)
    assert 'operators[0].dpop_jkt of "ada": is missing, and approvals.require_signature is true.' in problem
    assert problems_of(NEEDED + rows + f'dpop_jkt = "{JKT}"\n') == []
    assert problems_of(NEEDED + rows.replace("true", "false")) == []


def test_an_operator_key_may_lie_in_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "ada.key"
    file.write_text(KEY + "\n")
    text = NEEDED + '[[operators]]\nname = "ada"\napi_key_file = "ada.key"\n'
    file.chmod(0o640)
    assert "mode 0640 lets others in" in problems_of(text, folder=tmp_path)[0]
    file.chmod(0o600)
    assert settings_of(text, folder=tmp_path).operators[0].api_key_sha256 == digest_of(KEY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_pending_per_principal = 501", "max_pending_per_principal = 501: must not be above 500"),
        ("max_pending = 100", "max_pending_per_principal = 100: must not be above 50"),
        ("max_pending_bytes = 20000000", "max_pending_bytes_per_principal = 16777216: must not be above 10000000"),
        ("max_pending = 1", "max_pending = 1: must be 2 or more"),
        ("max_pending_bytes_per_principal = 1", "max_pending_bytes_per_principal = 1: must be 8388608 or more"),
    ],
)
def test_caps_of_holds_that_would_let_one_principal_keep_others_from_waiting_are_refused(text: str, said: str) -> None:
    (problem,) = problems_of(f'state_dir = "/s"\npublic_base_url = "https://g.example"\n[approvals]\n{text}\n')
    assert f"g.toml:4  approvals.{said}" in problem


def test_ended_approvals_and_kept_values_are_kept_for_ten_years_at_most() -> None:
    settings = settings_of(NEEDED + "approvals.keep_days = 3650\nevidence.keep_days = 3650\n")
    assert (settings.approvals.keep_days, settings.evidence.keep_days) == (3650, 3650)


def test_caps_of_holds_may_be_as_narrow_as_one_for_each(tmp_path: Path) -> None:
    caps = "max_pending = 2\nmax_pending_per_principal = 1\n"
    text = f'state_dir = "/s"\npublic_base_url = "https://g.example"\n[approvals]\n{caps}'
    assert not [one for one in problems_of(text) if "approvals" in one]


TWO = "".join(
    f'[[operators]]\nname = "{name}"\napi_key_sha256 = "{digit * 64}"\ngroups = ["finance"]\n'
    for name, digit in (("ada", "1"), ("bob", "2"))
)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("count = 2", "exactly one of risk_level and action_id"),
        ('risk_level = "high"\naction_id = "a"\ncount = 2', "exactly one of risk_level and action_id"),
        ('risk_level = "high"', "needs count or groups"),
        ('risk_level = "high"\ncount = 3', "3 approvals, and only 2 operators could give them"),
        ('risk_level = "high"\ngroups = { security = 1 }', '"security" has 0 operators, 1 are needed'),
        ('risk_level = "high"\ncount = 1\ngroups = { finance = 2 }', "count = 1: is below the sum of its groups"),
        ('risk_level = "odd"\ncount = 2', "risk_level"),
        ('risk_level = "low"\ncount = 2\n[[approvals.quorum]]\nrisk_level = "low"\ncount = 1', "is there twice"),
    ],
)
def test_a_quorum_that_can_not_be_meant_or_met_is_a_problem(rule: str, said: str) -> None:
    problems = problems_of(NEEDED + TWO + "[[approvals.quorum]]\n" + rule + "\n")
    assert any(said in problem for problem in problems), problems


def test_a_quorum_is_read_with_groups_and_roles_of_operators() -> None:
    rule = '[[approvals.quorum]]\naction_id = "pay"\ngroups = { finance = 2 }\n'
    settings = settings_of(NEEDED + TWO + rule)
    assert settings.approvals.quorum == (QuorumRule(action_id="pay", groups={"finance": 2}),)
    readers = TWO.replace('groups = ["finance"]\n', 'groups = ["finance"]\nroles = ["read"]\n')
    assert any('"finance" has 0 operators' in problem for problem in problems_of(NEEDED + readers + rule))


@pytest.mark.parametrize(
    ("rule", "problems"),
    [
        ("count = 2", []), ("count = 3", ["3 approvals, and only 2 operators could give them"]),
        ("groups = { finance = 1 }", ['"finance" has 0 operators, 1 are needed']),
    ],
)  # fmt: skip
def test_the_operator_that_gateway_dev_makes_counts_for_a_quorum_and_is_in_no_group(
    tmp_path: Path, rule: str, problems: list[str]
) -> None:
    file = tmp_path / "gateway.toml"
    ada = f'[[operators]]\nname = "ada"\napi_key = "{KEY}"\n'
    file.write_text(f'{ada}[[approvals.quorum]]\naction_id = "pay"\n{rule}\n')
    found = load_dev(DevOptions(config=file, state_dir=tmp_path / "state"), {"HOME": str(tmp_path)}).problems
    assert [said for said in problems if said not in str(found)] == []
    assert len(found) == len(problems), found
