"""The Merkle tree over events and intents, and the signed checkpoints that commit to it."""
