"""Class names that stand twice in the product, and the reason for each."""

CLIENT = "a name that the client library exports; the other is the gateway's noun, which clients never see"
EXCEPTIONS = {
    "AuditEvent": "clients read events of every version, and name only the members that they show",
    "Checkpoint": CLIENT,
    "Denied": "an answer of the interface, and the exception of the client library for 403",
    "Lease": "the answer of the interface, the verified claims in the front, and what the client library keeps",
    "Session": CLIENT,
    "VerifierKey": CLIENT,
}
