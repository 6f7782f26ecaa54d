"""The HTTP skin of the front: sockets, connections, limits and deadlines; bytes in, `Request` out, `Answer` back.

Knows nothing of routes, leases or actions: the one function that it is given decides the answer.
`client_bodies.py` is for the few requests that the gateway itself sends.
"""
