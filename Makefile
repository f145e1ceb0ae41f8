# make test works on a clean clone with nothing but Python 3.11 or newer; `make help` lists the rest.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
VERL   := .venv-verl
CORE   := .venv-core
VERIFIERS := .venv-verifiers
HOOKS  := .venv-hooks
RANKS  := .venv-ranks
VLLM   := .venv-vllm
JOBS   ?= 4
CHROMIUM ?= $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name))))

.DEFAULT_GOAL := help
.PHONY: help setup test test-long test-core test-user test-docs test-kernels test-browser verl test-verl test-verifiers test-hooks test-ranks test-vllm check docs demo clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## .venv with the package (editable) and the development tools, at the pinned versions

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed: make PYTHON=python3.12 ...' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

test: $(STAMP)  ## the tests, four files at a time, for many of them wait (JOBS=0: one); PYTEST_ARGS="tests/cli/test_cli.py -k resume" for some
	$(BIN)/python -m pytest -m 'not long' -n $(JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-long: $(STAMP)  ## the tests that take long: what is killed and resumed, whole runs in several ways, other languages than Python and C++
	$(BIN)/python -m pytest -m long -n $(JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-core: $(CORE)/.installed  ## the core alone, in an environment without extras: what works, what the rest says, its size
	$(CORE)/bin/python -m pytest tests/on_core

$(CORE)/.installed: pyproject.toml constraints.txt
	rm -rf $(CORE)
	$(PYTHON) -m venv $(CORE)
	PIP_CONSTRAINT=constraints.txt $(CORE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . pytest
	@touch $@

test-user: $(STAMP)  ## the attacks on the judge once more, by an ordinary user in both sandbox layers; needs root
	MICROCODER_ATTACK_USER=1 $(BIN)/python -m pytest -rs tests/judge/test_attacks.py -k ordinary_user

test-docs: $(STAMP)  ## every Python and console block of the README and the tutorials, run at a small size
	MICROCODER_DOCS=1 $(BIN)/python -m pytest tests/docs

# Extras of tests, each added once: to install again removes the package for a moment, under whatever else is running.
$(VENV)/.with-%: $(STAMP)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

test-kernels: $(VENV)/.with-kernels  ## the GPU kernels in Triton's interpreter, which is a large package and slow
	$(BIN)/python -m pytest tests/sampling/test_kernels.py tests/training/test_fused.py

test-browser: $(VENV)/.with-browser  ## the pages of `microcoder view` in a real browser: CHROMIUM=... where it is not on the PATH
	@test -n "$(CHROMIUM)" || { echo 'no chromium was found: apt install chromium, or make test-browser CHROMIUM=/path/to/it' >&2; exit 1; }
	CHROMIUM="$(CHROMIUM)" $(BIN)/python -m pytest tests/browser

verl: $(VERL)/.installed  ## .venv-verl: verl on Ray, which needs other versions than the rest

$(VERL)/.installed: pyproject.toml constraints-verl.txt
	$(PYTHON) -m venv $(VERL)
	PIP_CONSTRAINT=constraints-verl.txt $(VERL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-verl.txt \
		-e '.[verl,data,serve]' pytest
	@touch $@

test-verl: $(VERL)/.installed  ## training on verl, judging and data on Ray: real Ray and TransferQueue on the CPU
	$(VERL)/bin/python -m pytest tests/on_verl
	$(VERL)/bin/python -m pytest tests/on_ray

test-verifiers: $(VERIFIERS)/.installed  ## the environment for verifiers, which needs other versions than the rest
	$(VERIFIERS)/bin/python -m pytest tests/on_verifiers

$(VERIFIERS)/.installed: pyproject.toml constraints-verifiers.txt
	rm -rf $(VERIFIERS)
	$(PYTHON) -m venv $(VERIFIERS)
	PIP_CONSTRAINT=constraints-verifiers.txt $(VERIFIERS)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints-verifiers.txt -e '.[verifiers]' pytest
	@touch $@

test-hooks: $(HOOKS)/.installed  ## the judge in lm-evaluation-harness, inspect_ai, OpenEnv and SkyRL's environments
	$(HOOKS)/bin/python -m pytest tests/on_hooks

test-ranks: $(RANKS)/.installed  ## training on two CPU ranks in every layout: replicated, FSDP2, ZeRO; a killed rank
	MICROCODER_RANKS=1 $(RANKS)/bin/python -m pytest tests/on_ranks

test-vllm: $(VLLM)/.installed  ## sampling and training with a real vLLM, built for CPUs: in the process, and as a server
	$(VLLM)/bin/python -m pytest tests/on_vllm

# What .venv has is taken from there: to install all of it again would take longer than the tests.
$(HOOKS)/.installed $(RANKS)/.installed $(VLLM)/.installed: .venv-%/.installed: $(STAMP) constraints-%.txt
	rm -rf $(@D)
	$(PYTHON) -m venv --without-pip $(@D)
	$(BIN)/python -m pip --python $(@D)/bin/python install --quiet --disable-pip-version-check --no-compile --no-deps \
		-r constraints-$*.txt
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> $$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth
	@touch $@

check: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.with-docs  ## the docs site in build/site, strictly: a dead link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

demo: $(STAMP)  ## train nano on two cores for a few minutes: before, after, runs/demo (started over each time)
	rm -rf runs/demo
	$(BIN)/microcoder train demo

clean:  ## remove .venv and what the tools left behind
	rm -rf $(VENV) $(VERL) $(CORE) $(VERIFIERS) $(HOOKS) $(RANKS) $(VLLM) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
