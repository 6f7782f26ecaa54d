"""The supervisor: owns listening sockets, signals, children and the lifecycle of the gateway.

The only package of the gateway that it imports is `ipc`; it starts the other processes by name and never imports them.
It parses no request, loads no WebAssembly and reads no key.
"""
