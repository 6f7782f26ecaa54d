"""What a gateway signs, verified offline: bundles, receipts, checkpoints, signatures of operators. Makes no request."""
