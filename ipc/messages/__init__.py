"""Messages between processes: one file a channel, with the union of each direction.

Structs are frozen, tagged by name and refuse unknown fields. Binary and JSON payloads travel as text. The tables in
`ipc/protocols/` say which message may come in which state. Operations of the notary: `ipc/operations/`.
"""
