"""JSON from outside and the schemas that it must fit, with patterns that can't run for long."""
