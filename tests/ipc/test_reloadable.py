"""Which settings a reload applies, and how two configurations are compared."""

from msgspec.structs import replace

from ipc.configuration.networks import NetworkSettings
from ipc.reloadable import RELOADABLE, differing, named_values, reloadable_of, with_reloadable
from ipc.settings import (
    EgressSettings,
    IdentitySettings,
    LimitSettings,
    OperatorSettings,
    PrincipalMapping,
    Settings,
    WebhookSettings,
)
from supervisor.settings.schema import leaf_paths

ONE = Settings("/state", "http://gateway.test")
ANN = OperatorSettings("ann")


def test_every_setting_has_the_name_that_the_file_gives_it() -> None:
    assert {name for name, _ in named_values(ONE)} == {".".join(path) for path in leaf_paths()}
    assert {name for name, _ in named_values(ONE)} >= RELOADABLE


def test_exactly_the_different_settings_are_named_in_order() -> None:
    other = replace(
        ONE, operators=(ANN,), limits=LimitSettings(max_in_flight=1), webhooks=(WebhookSettings("w", "https://w"),),
        identity=IdentitySettings(allow_unmapped=True, principals={"1": PrincipalMapping("p")}), dev_mode=True,
        weakened=("dev_mode",), egress=EgressSettings(networks=(NetworkSettings("n"),)),
    )  # fmt: skip
    named = (
        "egress.networks", "identity.peercred.allow_unmapped", "identity.peercred.principals", "limits.max_in_flight",
        "operators", "webhooks",
    )  # fmt: skip
    assert (differing(ONE, other), differing(other, ONE), differing(other, other)) == (named, named, ())


def test_nothing_but_what_follows_a_reload_is_taken_from_the_other() -> None:
    other = replace(
        ONE, operators=(ANN,), lease_ttl_seconds=1, weakened=("w",),
        identity=IdentitySettings("none", allow_unmapped=True, principals={"1": PrincipalMapping("p")}),
        egress=EgressSettings(proxy_secret="s", networks=(NetworkSettings("n"),)),
    )  # fmt: skip
    identity = IdentitySettings(principals={"1": PrincipalMapping("p")})
    assert with_reloadable(ONE, reloadable_of(other)) == replace(
        ONE, operators=(ANN,), weakened=("w",), identity=identity,
        egress=EgressSettings(networks=(NetworkSettings("n"),)),
    )  # fmt: skip
