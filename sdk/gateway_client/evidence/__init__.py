"""Bundles, receipts, checkpoints and signatures of operators, verified offline. Makes no request."""
