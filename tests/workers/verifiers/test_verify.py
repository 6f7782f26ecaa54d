"""Verifiers: the table of judgements, on observations of the host."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.messages.calling import Observation, Verification
from tests.support.worker_plans import file_plan, make_plan, text
from workers.host.meter import HostError
from workers.verifiers.verify import verify


def http(status: int | None = 200, *, ok: bool = True) -> Observation:
    return Observation("http", "POST http://a.test/", ok=ok, status=status, bytes=2, body_sha256="sha256:ab")


def judge(
    observations: tuple[Observation, ...] = (), output: dict[str, Any] | None = None, **changes: Any
) -> Verification:
    config = changes.pop("config", {})
    return verify(make_plan(verification_config=text(config), **changes), output or {}, observations, lambda: None, "")


def test_nothing_to_verify_is_skipped_and_unverifiable_is_said() -> None:
    assert judge(verifier_kind="none").outcome == "skipped"
    assert judge(verifier_kind="unverifiable").outcome == "unverifiable_declared"


@pytest.mark.parametrize("kind", ["", "NONE", "smtp_id", "__class__"])
def test_a_kind_that_is_not_known_is_never_verified(kind: str) -> None:
    assert judge((http(),), verifier_kind=kind).outcome == "verification_failed"


@pytest.mark.parametrize(
    ("expected", "statuses", "verified"),
    [
        (None, (200,), True),
        (None, (204,), True),
        (None, (199,), False),
        (None, (301,), False),
        (None, (404,), False),
        (None, (500,), False),
        ([200, 201], (201,), True),
        ([200, 201], (204,), False),
        (["2xx", 404], (404,), True),
        (["3xx"], (302,), True),
        (["xx"], (200,), False),
        ([True], (1,), False),
        (["200"], (200,), False),
        ([], (200,), False),
        ("2xx", (200,), False),
        (None, (), False),
        (None, (500, 200), False),
        (None, (200, 500), False),
        (None, (200, 201), True),
    ],
)
def test_http_status_wants_every_answer_as_expected(expected: Any, statuses: tuple[int, ...], verified: bool) -> None:
    config = {} if expected is None else {"expected": expected}
    verification = judge(tuple(http(status) for status in statuses), verifier_kind="http_status", config=config)
    assert verification.outcome == ("verified" if verified else "verification_failed")
    assert (verification.reason is None) == verified
    if verified:
        assert json.loads(verification.evidence[0]) == {
            "kind": "http_status", "target": "POST http://a.test/", "status": statuses[-1], "body_sha256": "sha256:ab",
        }  # fmt: skip
    else:
        assert verification.evidence == ()


def test_http_status_believes_the_host_and_not_the_provider() -> None:
    verification = judge((http(500),), {"status": 200, "body": {"ok": True}}, verifier_kind="http_status")
    assert verification.outcome == "verification_failed"
    assert judge((), {"status": 200}, verifier_kind="http_status").outcome == "verification_failed"


def test_http_status_judges_the_answer_to_a_request_that_the_host_sent_once_more() -> None:
    refused = msgspec.structs.replace(http(401), resent=True)
    verification = judge((refused, http(201)), verifier_kind="http_status")
    assert verification.outcome == "verified"
    shown = json.loads(verification.evidence[0])
    assert (shown["status"], shown["resent"]) == (201, True)
    for answers in ((refused, http(401)), (refused, http(None, ok=False)), (refused,), (http(401), http(201))):
        assert judge(answers, verifier_kind="http_status").outcome == "verification_failed"


def test_http_status_wants_an_answer_for_every_request() -> None:
    assert judge((http(None, ok=False), http()), verifier_kind="http_status").outcome == "verification_failed"


def test_an_observation_of_a_file_is_no_answer() -> None:
    seen = Observation("fs", "write a", ok=True, status=200)
    assert judge((seen,), verifier_kind="http_status").outcome == "verification_failed"


def wrote(path: str, *, ok: bool = True, operation: str = "write") -> Observation:
    return Observation("fs", f"{operation} {path}", ok=ok, body_sha256="sha256:whatever")


def judge_file(root: Path, observations: tuple[Observation, ...], request: Any, **config: Any) -> Verification:
    plan = file_plan(root, request=text(request), verifier_kind="fs_hash", verification_config=text(config))
    return verify(plan, {"sha256": "what the provider says"}, observations, lambda: None, str(root))


def test_fs_hash_reads_the_file_again(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "a").write_text("héllo")
    verification = judge_file(tmp_path, (wrote("n/a"),), {"path": "n/a", "content": "héllo"})
    assert verification.outcome == "verified"
    assert json.loads(verification.evidence[0]) == {
        "kind": "fs_hash", "path": "n/a", "bytes": 6,
        "sha256": "sha256:" + hashlib.sha256("héllo".encode()).hexdigest(),
    }  # fmt: skip


def test_fs_hash_reads_no_file_outside_the_folder_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    plan = file_plan(tmp_path, request=text({"path": "a", "content": "x"}), verifier_kind="fs_hash")
    verification = verify(plan, {}, (wrote("a"),), lambda: None, str(tmp_path / "files"))
    assert verification == Verification("verification_failed", "the file can't be read")


@pytest.mark.parametrize(
    ("content", "seen", "request_body", "word"),
    [
        ("other", wrote("a"), {"path": "a", "content": "x"}, "something else"),
        ("x\n", wrote("a"), {"path": "a", "content": "x"}, "something else"),
        (None, wrote("a"), {"path": "a", "content": "x"}, "can't be read"),
        ("x", wrote("b"), {"path": "a", "content": "x"}, "no write"),
        ("x", wrote("a", ok=False), {"path": "a", "content": "x"}, "no write"),
        ("x", wrote("a", operation="read"), {"path": "a", "content": "x"}, "no write"),
        ("x", wrote("a"), {"path": "a"}, "nothing at /content"),
        ("x", wrote("a"), {"content": "x"}, "nothing at /path"),
        ("x", wrote("a"), {"path": "a", "content": 5}, "no text"),
        ("x", wrote("../a"), {"path": "../a", "content": "x"}, "segment"),
    ],
)
def test_fs_hash_fails_unless_host_and_disk_agree(
    tmp_path: Path, content: str | None, seen: Observation, request_body: Any, word: str
) -> None:
    if content is not None:
        (tmp_path / "a").write_text(content)
    verification = judge_file(tmp_path, (seen,), request_body)
    assert verification.outcome == "verification_failed"
    assert verification.reason is not None
    assert word in verification.reason


def test_fs_hash_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "a").symlink_to("real")
    assert judge_file(tmp_path, (wrote("a"),), {"path": "a", "content": "x"}).outcome == "verification_failed"


def test_fs_hash_takes_its_pointers_from_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    request = {"file": {"na~me": "a"}, "parts": ["y", "x"]}
    verification = judge_file(tmp_path, (wrote("a"),), request, path_pointer="/file/na~0me", content_pointer="/parts/1")
    assert verification.outcome == "verified"
    assert judge_file(tmp_path, (wrote("a"),), request, path_pointer="file").outcome == "verification_failed"
    assert judge_file(tmp_path, (wrote("a"),), request, path_pointer=5).outcome == "verification_failed"


def test_fs_hash_without_files_is_not_verified() -> None:
    verification = judge((wrote("a"),), verifier_kind="fs_hash", request=text({"path": "a", "content": ""}))
    assert verification.outcome == "verification_failed"


SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "pattern": "^[a-z]+$"}}}


def test_response_schema_takes_its_schema_from_the_config_or_the_manifest() -> None:
    good = {"id": "abc"}
    assert judge((), good, verifier_kind="response_schema", config={"schema": SCHEMA}).outcome == "verified"
    assert judge((), good, verifier_kind="response_schema", response_schema=text(SCHEMA)).outcome == "verified"
    assert judge((), good, verifier_kind="response_schema").outcome == "verification_failed"


@pytest.mark.parametrize(
    ("output", "reason"),
    [({}, "(output): required"), ({"id": "S3CRET"}, "/id: pattern"), ({"id": 5}, "/id: type")],
)
def test_response_schema_names_place_and_rule_and_never_the_value(output: dict[str, Any], reason: str) -> None:
    verification = judge((), output, verifier_kind="response_schema", response_schema=text(SCHEMA))
    assert verification == Verification("verification_failed", f"the output does not fit: {reason}")


@pytest.mark.parametrize(
    "schema", [{"type": 5}, {"$ref": "http://127.0.0.1:1/x"}, {"$ref": "file:///etc/passwd"}, {"pattern": "("}, 5]
)
def test_a_schema_that_does_not_compile_verifies_nothing_and_fetches_nothing(schema: Any) -> None:
    verification = judge((), {"id": "a"}, verifier_kind="response_schema", config={"schema": schema})
    assert verification.outcome == "verification_failed"


def test_a_pattern_can_not_be_made_to_run_for_long() -> None:
    schema = {"properties": {"id": {"pattern": "^(a+)+$"}}}
    verification = judge((), {"id": "a" * 5000 + "!"}, verifier_kind="response_schema", config={"schema": schema})
    assert verification.outcome == "verification_failed"


@pytest.mark.parametrize("config", ["[]", "5", "not json", '{"expected":null}'])
def test_a_configuration_that_makes_no_sense_verifies_nothing(config: str) -> None:
    plan = make_plan(verifier_kind="http_status", verification_config=config)
    assert verify(plan, {}, (http(),), lambda: None, "").outcome == "verification_failed"


def test_a_verifier_that_runs_out_of_time_verifies_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    def over() -> None:
        raise HostError("timeout", "the call's time is over")

    plan = file_plan(tmp_path, request=text({"path": "a", "content": "x"}), verifier_kind="fs_hash")
    assert verify(plan, {}, (wrote("a"),), over, str(tmp_path)) == Verification(
        "verification_failed", "the call's time is over"
    )
