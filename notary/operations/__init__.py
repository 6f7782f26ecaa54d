"""The operations of the notary: one file a topic, one function an operation (declared in ipc/operations/)."""
