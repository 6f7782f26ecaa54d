from pathlib import Path

import pytest

from frontend.actions.trust import Trusted, load_trusted
from ipc.messages.modules import ModuleVerdict

DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def verdict(kind: str, digest: str | None = DIGEST) -> ModuleVerdict:
    return ModuleVerdict(DIGEST, kind, digest)


@pytest.mark.parametrize(
    ("trusted", "reference", "module", "expected"),
    [
        ({DIGEST}, DIGEST, verdict("ok"), "digest_ok"),
        (set(), DIGEST, verdict("ok"), "not_registered"),
        ({OTHER}, DIGEST, verdict("ok"), "not_registered"),
        ({DIGEST, OTHER}, DIGEST, verdict("ok", OTHER), "mismatch"),
        ({DIGEST}, DIGEST, verdict("mismatch", OTHER), "mismatch"),
        ({DIGEST}, DIGEST, verdict("missing", None), "not_registered"),
        ({DIGEST}, DIGEST, verdict("refused"), "not_registered"),
        ({DIGEST}, DIGEST, verdict("ok", None), "not_registered"),
        ({DIGEST}, DIGEST, verdict("something new"), "not_registered"),
        ({DIGEST}, DIGEST, None, "not_registered"),
        (set(), "builtin:echo", verdict("ok", OTHER), "digest_ok"),
        (set(), "builtin:echo", verdict("mismatch", OTHER), "mismatch"),
        (set(), "builtin:echo", verdict("missing", None), "not_registered"),
    ],
)
def test_only_a_module_beyond_doubt_is_trusted(
    trusted: set[str], reference: str, module: ModuleVerdict | None, expected: str
) -> None:
    assert Trusted(frozenset(trusted)).verdict(reference, module) == expected


def test_no_file_trusts_nothing_but_what_is_built_in(tmp_path: Path) -> None:
    assert load_trusted(tmp_path) == (Trusted(), [])


def test_the_file_lists_digests_with_notes(tmp_path: Path) -> None:
    (tmp_path / "trusted_modules.yaml").write_text(f"digests:\n  {DIGEST}: mailer 1.2, reviewed by ann\n  {OTHER}:\n")
    assert load_trusted(tmp_path) == (Trusted(frozenset({DIGEST, OTHER})), [])


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("digests:\n  sha256:abc: x\n", "digests"),
        (f"digests:\n  {DIGEST}: [x]\n", f"digests.{DIGEST}"),
        (f"digest:\n  {DIGEST}: x\n", "digest"),
        ("digests: [a]\n", "digests"),
        (f"digests:\n  {DIGEST}: a\n  {DIGEST}: b\n", f"digests.{DIGEST}"),
        ("", ""),
    ],
)
def test_a_file_with_a_problem_trusts_nothing(tmp_path: Path, text: str, field: str) -> None:
    (tmp_path / "trusted_modules.yaml").write_text(text)
    trusted, problems = load_trusted(tmp_path)
    assert trusted == Trusted()
    assert [problem.field for problem in problems] == [field]
