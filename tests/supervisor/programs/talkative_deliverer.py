"""A deliverer that strangers have taken over: it says of many endpoints, and often of one, that they are gone."""

import socket
import sys

from ipc.channel.blocking import BlockingChannel
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.delivering import DelivererReady, EndpointGone, SupervisorToDeliverer
from ipc.protocols.deliverer import SUPERVISOR_TO_DELIVERER

MANY = 2000


def main() -> None:
    sock = socket.socket(fileno=int(sys.argv[sys.argv.index("--control-fd") + 1]))
    channel: BlockingChannel[SupervisorToDeliverer] = BlockingChannel(
        sock, SupervisorToDeliverer, table=SUPERVISOR_TO_DELIVERER, cap_in=MAX_CONTROL_FRAME, cap_out=MAX_CONTROL_FRAME
    )
    channel.receive()
    channel.send(DelivererReady())
    for number in range(MANY):
        channel.send(EndpointGone(f"made up {number}"))
        channel.send(EndpointGone("hook"))
    channel.send(EndpointGone("other"))
    sock.recv(1)


if __name__ == "__main__":
    main()
