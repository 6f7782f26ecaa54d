"""OPA over REST as the policy engine of a front."""
