# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Each sets up .venv by itself; the second run starts at once.
SHELL := /bin/bash
# Empty: scripts/interpreter.sh chooses.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What Python has compiled it may keep: everything here starts many processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all quick chaos servers lint bench run openapi conformance failure-modes kubernetes docs docs-serve providers providers-check lock release clean setup
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY) ## the virtual environment in .venv, from the lock file; every other target makes it too

$(READY): requirements-dev.lock pyproject.toml sdk/pyproject.toml scripts/setup.sh scripts/interpreter.sh
	@PYTHON="$(PYTHON)" bash scripts/setup.sh "$(VENV)"
	@touch $@

demo: $(READY) ## the main job, told step by step, on embedded defaults (half a minute; the first time sets up)
	@$(BIN)/python -m contrib.demo

test: $(READY) servers ## every test but slow ones, in three processes (ten minutes on 2 cores)
	@bash scripts/test.sh $(BIN)/python fast

test-all: $(READY) servers ## every test, and more examples of each property (half an hour on 2 cores)
	@bash scripts/test.sh $(BIN)/python all

quick: $(READY) ## what to run between two edits: no gateway, no process, no property (about a minute)
	@bash scripts/quick.sh $(BIN)/python

chaos: $(READY) ## kill, freeze and starve a gateway under load, and hold its evidence against the truth (N=10000 SEED=7)
	@$(BIN)/python -u -m tests.chaos --events $(or $(N),200) $(if $(SEED),--seed $(SEED)) $(ARGS)

servers: $(READY) ## servers that tests run for real, fetched where they are missing
	@bash scripts/servers.sh "$(VENV)/servers"
	@bash scripts/go_programs.sh "$(VENV)/go"
	@bash scripts/provider_tools.sh "$(BIN)/gateway" "$(VENV)/providers"

lint: $(READY) ## ruff and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(READY) ## floors and ourselves in one run, as ratios; make bench ARGS="--quick", --help lists them
	@$(BIN)/python -m bench $(ARGS)

run: $(READY) ## a dev gateway in the foreground; ARGS="--listen 127.0.0.1:3001" and the like, ARGS=--help lists them
	@$(BIN)/gateway dev $(ARGS)

openapi: $(READY) ## docs/openapi.json anew, from the table of endpoints
	@$(BIN)/python -m frontend.api.describe

conformance: $(READY) ## docs/conformance.md anew, from the rows of the contract and their tests
	@$(BIN)/python -m tests.conformance.report

failure-modes: $(READY) ## docs/failure-modes.md anew, from the table of faults
	@$(BIN)/python -m tests.faults.report

kubernetes: $(READY) servers ## the kustomize bases of contrib/kubernetes anew, from its chart
	@$(BIN)/python -m tests.support.kubernetes

docs: $(READY) ## the documents as a site, in build/site, every link checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --clean

docs-serve: $(READY) ## the same on http://127.0.0.1:8000, made anew whenever a page changes
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

providers: ## build the built-in WebAssembly providers (needs node and npm)
	@PYTHON="$(PYTHON)" bash workers/providers/src/build.sh

providers-check: ## build them again elsewhere and compare the bytes
	@PYTHON="$(PYTHON)" bash workers/providers/src/build.sh --check

lock: ## resolve the lock files anew (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml --extra otlp -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml --group dev -o requirements-dev.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements-dev.lock sdk/pyproject.toml --extra desk -o sdk/requirements.lock

release: $(READY) ## source archives, wheels, a Debian package, bill of materials and checksums of this commit, in dist; publishes nothing
	@bash scripts/release.sh $(BIN)/python dist

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis bench/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
