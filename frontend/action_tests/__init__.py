"""`gateway test actions`: tests of actions that stand beside their manifests, run on a gateway of their own."""
