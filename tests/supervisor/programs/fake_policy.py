"""A policy process without Rego: waits, and leaves when the front says `exit N` or goes away."""

import argparse
import os
import socket

from setproctitle import setproctitle

from ipc.process.parent import die_with_parent


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--walls")
    options = parser.parse_args()
    die_with_parent(options.parent)
    setproctitle(f"gateway: policy {options.number}")
    channel = socket.socket(fileno=options.channel_fd)
    while data := channel.recv(4096):
        word, _, argument = data.decode().partition(" ")
        if word == "exit":
            os._exit(int(argument))
    os._exit(11)


main()
