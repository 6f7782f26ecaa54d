"""Which changes of the code no test notices: `make mutants`, see CONTRIBUTING.md, "Mutants"."""
