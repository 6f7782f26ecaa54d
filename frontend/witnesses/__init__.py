"""Witnesses: checkpoints carried to those who cosign them, and their cosignatures to the notary, which checks them."""
