"""The policy process: compiles Rego, checks what it compiled, answers questions. Holds nothing else."""
