"""The JSON objects of the interface, one module a noun: what parses a request is what documents it, and so for answers.

Structs, how they are read from a request, and what a handler says of itself. Imports leaves of the front alone.
"""
