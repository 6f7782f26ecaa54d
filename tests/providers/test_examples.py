"""The example actions: each manifest holds together, and fits the provider that it names."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from frontend.files.problems import Report
from frontend.manifests.manifest import Manifest
from frontend.manifests.reading import manifest_of, read_file
from frontend.manifests.templates import CompiledTemplate
from ipc.configuration.secret_ways import AsHeader
from tests.providers.conftest import ROOT, Call, module
from tests.support.provider_host import Host, Providers

EXAMPLES = ROOT / "contrib" / "examples" / "actions"
RISKS = {
    "text_digest": "low",
    "file_write": "medium",
    "http_fetch": "medium",
    "http_post": "medium",
    "payment_transfer": "critical",
    "spin": "low",
    "forbidden_export": "high",
}
REQUESTS: dict[str, dict[str, Any]] = {
    "text_digest": {"text": "grüße"},
    "file_write": {"path": "notes/hello.txt", "content": "hello"},
    "http_fetch": {"path": "/v1/things?page=2"},
    "http_post": {"path": "messages", "message": 'said "hi"\n'},
    "payment_transfer": {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"},
    "spin": {"fuel": 1000, "memory_mb": 1, "seconds": 0.25},
    "forbidden_export": {"table": "customers"},
}


def load(path: Path) -> Manifest:
    """The manifest of a file that has no problem."""
    report = Report(path.name)
    tree = read_file(path, report)
    manifest = manifest_of(tree, report, has_proxy=False) if tree else None
    assert [str(problem) for problem in report.problems] == []
    assert manifest is not None
    return manifest


@pytest.fixture(params=sorted(RISKS))
def manifest(request: pytest.FixtureRequest) -> Manifest:
    """Each example in turn."""
    return load(EXAMPLES / f"{request.param}.yaml")


def provider_of(manifest: Manifest) -> Path:
    """The component that a manifest names."""
    return module(manifest.provider_module_digest.removeprefix("builtin:"))


def canonical(request: dict[str, Any]) -> str:
    """The request as the gateway hashes it and hands it over."""
    return json.dumps(request, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def provider_input(manifest: Manifest, request: dict[str, Any]) -> str:
    """The provider's input for a request."""
    if manifest.template is None:
        return canonical(request)
    planned, _host = CompiledTemplate(manifest.template).render(request)
    call = {"method": planned.method, "url": planned.url, "headers": planned.headers, "body": planned.body}
    return json.dumps({"request": request, "call": call})


def test_there_is_one_file_for_each_example_and_no_other() -> None:
    assert {path.stem for path in EXAMPLES.iterdir()} == set(RISKS)


def test_a_file_is_named_after_its_action_and_carries_the_documented_risk(manifest: Manifest) -> None:
    assert manifest.file == f"{manifest.action_id}.yaml"
    assert (manifest.version, manifest.risk_level) == ("1.0.0", RISKS[manifest.action_id])
    assert len(manifest.description) > 20


def test_it_grants_exactly_what_its_provider_imports(manifest: Manifest, providers: Providers) -> None:
    assert set(manifest.required_imports) == providers.imports(provider_of(manifest))


def test_a_good_request_runs_within_its_limits_and_answers_as_declared(
    manifest: Manifest, host: Host, providers: Providers
) -> None:
    request = REQUESTS[manifest.action_id]
    jsonschema.validate(request, manifest.io.request_schema or {})
    host.body = '{"id": 1}'
    limits = manifest.limits
    outcome = providers.call(
        provider_of(manifest), provider_input(manifest, request), host, fuel=limits.fuel, memory_mb=limits.memory_mb
    )
    jsonschema.validate(outcome.output, manifest.io.response_schema or {})
    assert len(host.sent) <= limits.max_io_calls


@pytest.mark.parametrize("change", ["unknown member", "missing member", "wrong type"])
def test_a_request_of_another_shape_is_refused(manifest: Manifest, change: str) -> None:
    request = dict(REQUESTS[manifest.action_id])
    first = next(iter(request))
    if change == "unknown member":
        request["extra"] = 1
    elif change == "wrong type":
        request[first] = [request[first]]
    elif manifest.action_id != "spin":
        del request[first]
    else:
        request[first] = -1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(request, manifest.io.request_schema or {})


def test_the_largest_request_fits_the_declared_fuel_and_memory(providers: Providers, host: Host) -> None:
    for name, request in (
        ("text_digest", {"text": "a " * 524_270}),
        ("text_digest", {"text": "\x00" * 174_700}),
        ("file_write", {"path": "a", "content": "\u00fc" * 524_270}),
    ):
        manifest = load(EXAMPLES / f"{name}.yaml")
        text = canonical(request)
        assert manifest.io.max_request_bytes - 500 < len(text.encode()) <= manifest.io.max_request_bytes
        limits = manifest.limits
        outcome = providers.call(provider_of(manifest), text, host, fuel=limits.fuel, memory_mb=limits.memory_mb)
        assert outcome.failure is None


def test_the_largest_answer_fits_the_declared_fuel_and_memory(providers: Providers, host: Host) -> None:
    manifest = load(EXAMPLES / "http_fetch.yaml")
    for body in ("[" + "1.5," * 262_142 + "0]", '"' * 1_048_576, json.dumps({str(n): n for n in range(66_000)})):
        host.body = body
        text = provider_input(manifest, {"path": "a"})
        limits = manifest.limits
        outcome = providers.call(provider_of(manifest), text, host, fuel=limits.fuel, memory_mb=limits.memory_mb)
        assert outcome.output["status"] == 200


def test_what_a_template_says_is_what_is_sent(call: Call, host: Host) -> None:
    sent = {}
    for name in ("http_fetch", "http_post", "payment_transfer"):
        call("http", provider_input(load(EXAMPLES / f"{name}.yaml"), REQUESTS[name]))
        sent[name] = (host.sent[-1].method, host.sent[-1].url, host.sent[-1].body)
    assert sent == {
        "http_fetch": ("GET", "http://upstream.gateway.test/v1/things?page=2", ""),
        "http_post": ("POST", "http://upstream.gateway.test/messages", '{"message":"said \\"hi\\"\\n"}'),
        "payment_transfer": (
            "POST",
            "http://upstream.gateway.test/v1/transfers",
            '{"amount_cents":25000,"currency":"EUR","to":"acct-7"}',
        ),
    }


def test_a_secret_is_named_but_never_part_of_what_is_sent() -> None:
    for name, secret in (("http_post", "upstream_token"), ("payment_transfer", "bank_token")):
        (use,) = load(EXAMPLES / f"{name}.yaml").secrets
        assert (use.name, use.required, use.way) == (secret, True, AsHeader("Authorization", "Bearer {value}"))
