# Every target is complete in itself: it makes the virtual environment, installs what it needs, and runs.
# A second environment:  make test VENV=.venv313 PYTHON=python3.13

VENV ?= .venv
PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)

# One BLAS thread: the products are thin, and two threads are slower than one; chains and tests run side by side.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# Tests write thousands of small files, each flushed to disk: in memory, where there is room, that takes no time.
IN_MEMORY := $(shell test "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 2>/dev/null && echo TMPDIR=/dev/shm)
PYTEST := $(IN_MEMORY) $(BIN)/python -m pytest -n auto --dist worksteal --durations=15

# The sampler's packages need NumPy, SciPy, numba, joblib and threadpoolctl alone (lazy_loader only names the public
# functions); `test-light` runs their tests and doctests where nothing else is installed.
LIGHT_PACKAGES := chains model priors solvers variates
LIGHT_NEED := joblib lazy_loader numba numpy pytest pytest-xdist scipy threadpoolctl
LIGHT_VENV := $(VENV)-light
LIGHT_TESTS := tests/test_contracts.py src/markovblanket/contracts.py \
  $(foreach package,$(LIGHT_PACKAGES),tests/$(package) src/markovblanket/$(package))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-slow test-light lint bench docs clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

demo: $(VENV)/.installed-all  ## fit a simulated clinic, print its blanket beside the truth
	$(BIN)/python -m markovblanket demo

test: $(VENV)/.installed-test  ## every test but the slow rungs; needs no network once installed
	$(PYTEST) -m 'not slow' $(PYTEST_OPTIONS)

test-slow: $(VENV)/.installed-test $(VENV)/.installed-reference  ## the slow rungs: calibration, and an independent NUTS run
	$(PYTEST) -m slow

test-light: $(LIGHT_VENV)/.installed-light  ## the sampler where only NumPy, SciPy, numba, joblib and threadpoolctl exist
	$(LIGHT_VENV)/bin/python -m pytest -n auto --dist worksteal -m 'not slow' $(LIGHT_TESTS)

lint: $(VENV)/.installed-test $(VENV)/.installed-lint  ## style, types, and who may import whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-bench  ## what a sweep costs and what it buys, as ratios; make bench BENCH='--only q'
	$(BIN)/python benchmarks/run.py $(BENCH)

docs: $(VENV)/.installed-docs  ## the site, into docs/_build/html
	rm -rf docs/generated  # pages of functions that are gone would fail the build
	$(BIN)/python -m sphinx -W -E --keep-going -q -b html docs docs/_build/html

clean:  ## remove what builds and test runs left behind; virtual environments stay
	rm -rf build dist docs/_build docs/jupyter_execute docs/generated
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks studies -name __pycache__ -type d -prune -exec rm -rf {} +

# pip is the last thing `python -m venv` makes, so its presence means the environment is whole.
$(VENV)/bin/pip $(LIGHT_VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "markovblanket needs Python 3.11 or newer, and '$(PYTHON)' is not: name one with  make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(@:%/bin/pip=%)

# One stamp per extra: pip runs again only after pyproject.toml changed.
$(LIGHT_VENV)/.installed-light: pyproject.toml | $(LIGHT_VENV)/bin/pip
	$(LIGHT_VENV)/bin/python -m pip --disable-pip-version-check -qq install $(LIGHT_NEED)
	$(LIGHT_VENV)/bin/python -m pip --disable-pip-version-check -qq install --no-deps -e .
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(VENV)/bin/pip
	$(PIP) install -e '.[$*]'
	@touch $@
