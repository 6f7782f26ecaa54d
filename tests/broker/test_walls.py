"""The places and ports that the broker can reach."""

from broker.walls import walls
from ipc.walls.given import LANDLOCK, SECCOMP
from ipc.walls.kinds import KINDS
from ipc.walls.places import outside_places, program_places


def test_a_broker_connects_to_others_and_reaches_no_file_of_the_gateway() -> None:
    built = walls()
    common = {place.path for place in (*program_places(), *outside_places())}
    own = {place.path for place in built.places} - common
    assert own <= {"/dev/null", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"}
    assert (built.scope.may_connect, built.scope.may_bind) == (True, False)
    assert {SECCOMP, LANDLOCK, *built.namespaces} == set(KINDS["broker"]), "what gateway doctor says"
