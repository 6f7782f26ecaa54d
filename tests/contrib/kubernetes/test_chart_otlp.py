"""The chart's values of a collector: settings of `[telemetry.otlp]`, and files that lie where they say."""

import kubernetes_validate

from ipc.configuration.telemetry import OtlpSettings
from tests.contrib.kubernetes.test_chart import named, values
from tests.support.kubernetes import NEWEST, one_of, rendered, resources

OTLP = "GATEWAY__TELEMETRY__OTLP__"
ENDPOINT = "https://otlp.example"


def test_a_collector_of_the_values_is_one_of_the_gateway_with_its_secrets_in_place() -> None:
    given = {"endpoint": ENDPOINT, "secret": "otlp-token", "caSecret": "otlp-ca"}
    text = rendered(*(part for name, value in given.items() for part in ("--set", f"otlp.{name}={value}")))
    stateful = one_of(resources(text), "StatefulSet", "gateway")
    kubernetes_validate.validate(stateful, NEWEST, strict=True)
    spec = stateful["spec"]["template"]["spec"]
    secrets = {one["name"]: one["secret"]["secretName"] for one in spec["volumes"] if "secret" in one}
    for container in (named(spec, "gateway"), named(spec, "doctor")):
        told = {
            name.removeprefix(OTLP).lower(): value
            for name, value in values(container).items() if name.startswith(OTLP)
        }  # fmt: skip
        settings = OtlpSettings(**told)  # type: ignore[arg-type]  # texts alone
        assert settings.endpoint == ENDPOINT
        mounts = {one["mountPath"]: secrets.get(one["name"]) for one in container["volumeMounts"]}
        for path, secret in ((settings.headers_file, "otlp-token"), (settings.ca_file, "otlp-ca")):
            assert path is not None
            assert mounts[path.rpartition("/")[0]] == secret


def test_without_a_collector_no_variable_names_one() -> None:
    spec = one_of(resources(rendered()), "StatefulSet", "gateway")["spec"]["template"]["spec"]
    assert not any(name.startswith(OTLP) for name in values(named(spec, "gateway")))
