# make test works on a clean clone with nothing but Python 3.11 or newer; `make help` lists the rest.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup test test-kernels check demo clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## .venv with the package (editable) and the development tools, at the pinned versions

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed: make PYTHON=python3.12 ...' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

test: $(STAMP)  ## the tests, two files at a time (JOBS=0: one); PYTEST_ARGS="tests/test_cli.py -k resume" for some
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(PYTEST_ARGS)

test-kernels: $(STAMP)  ## the GPU kernels in Triton's interpreter, which is a large package and slow
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[kernels]'
	$(BIN)/python -m pytest tests/test_rollout_kernels.py

check: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy

demo: $(STAMP)  ## train nano on two cores for a few minutes: before, after, runs/demo (started over each time)
	rm -rf runs/demo
	$(BIN)/microcoder train demo

clean:  ## remove .venv and what the tools left behind
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
