"""The nouns of the interface, a module a noun: one declaration that the gateway answers by and its client decodes by.

Each distribution carries this package within its own: the gateway as `contract/`, the client library as
`gateway_client/contract/`, a link to the same files. Imports msgspec and itself alone, and itself relatively.
"""
