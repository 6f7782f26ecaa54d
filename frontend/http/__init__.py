"""The HTTP skin of the front: sockets, connections, limits and deadlines; bytes in, `Request` out, `Answer` back.

Knows nothing of routes, leases or actions: what to answer is decided by the one function it is given. `client_bodies.py`
is for the few requests that the gateway itself sends.
"""
