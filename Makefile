# Every target does its own set-up: a virtual environment in .venv, filled by pip.
PYTHON ?= python3
BIN := .venv/bin
# A file is one worker's: what its tests share is made once.
SPREAD := -n auto --maxprocesses 4 --dist loadfile
export MPLBACKEND := Agg
export NO_MKDOCS_2_WARNING := 1
# Bytecode is kept, whatever the environment says: each of the many processes of a run would compile everything again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo serve-demo test test-unit test-all coverage test-torch test-oldest mutants mutants-six bench bench-million lint docs wheel clean

.venv/core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[plots]'
	touch $@

.venv/dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch .venv/core $@

demo: .venv/core
	$(BIN)/leakcap demo

.venv/server: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[server]'
	touch $@

# Sample data, two accounts and all pages, on this machine alone.
serve-demo: .venv/server
	$(BIN)/leakcap serve --demo

# Processes share the cores: threads of the linear algebra beside them would only wait for each other.
test test-unit test-all test-torch coverage: export OMP_NUM_THREADS := 1

# Everything: all tiers of tests/README.md, and the examples in docstrings.
test: .venv/dev
	$(BIN)/python -m pytest -rsfE $(SPREAD)

# The inner loop: what every change is tried with.
test-unit: .venv/dev
	$(BIN)/python -m pytest -rsfE $(SPREAD) tests/unit src

# Lines that the inner loop runs. Not compiled loops: they are compared with `kernels/reference.py` by their answers.
coverage: .venv/dev
	$(BIN)/python -m pytest $(SPREAD) --cov=leakcap --cov-report=term-missing:skip-covered tests/unit src

# Torch is an extra, and so are its tests: on a machine without a GPU they run on torch's CPU.
.venv/torch: .venv/dev
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	touch $@

test-torch: .venv/torch
	$(BIN)/python -m pytest -rsfE -W default $(SPREAD) tests/unit/torch tests/reproductions/test_label_dp.py \
		tests/reproductions/test_label_dp_central.py tests/reproductions/test_label_dp_likelihood.py \
		tests/reproductions/test_label_dp_fixmatch.py \
		tests/reproductions/test_learnable_obfuscation.py tests/unit/obfuscation/test_state_dict.py \
		tests/unit/obfuscation/test_encoder.py tests/claims/obfuscation/test_public_rows.py tests/docs/test_three_processes.py

# The oldest versions of everything that the numbers come from, in an environment of their own: they may warn.
.venv-oldest/core: pyproject.toml tests/oldest.txt
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check --constraint tests/oldest.txt \
		--editable . polars pytest
	touch $@

# Their numba would take the place of ours in the folder where compiled loops are kept.
test-oldest: export NUMBA_CACHE_DIR := $(CURDIR)/.venv-oldest/numba
test-oldest: .venv-oldest/core
	.venv-oldest/bin/python -m pytest -rsfE -W default tests/unit/estimators/test_oldest.py tests/unit/estimators/test_twins.py \
		tests/unit/estimators/test_estimators.py

test-all: .venv/dev
	$(BIN)/python -m pytest -rsfE $(SPREAD) -m ''

# Small faults, each planted in a copy of the package: the tests that are named for it must fail (tests/README.md).
JOBS ?= 2
mutants: .venv/dev
	$(BIN)/python -m tests.mutants --jobs $(JOBS)

# Six of them, others for every commit.
mutants-six: .venv/dev
	$(BIN)/python -m tests.mutants --jobs $(JOBS) --six "$$(git rev-parse HEAD)"

bench: .venv/dev
	$(BIN)/python -m benchmarks

bench-million: .venv/dev
	$(BIN)/python -m benchmarks million scale

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/dev
	$(BIN)/mkdocs build --strict --quiet

# The wheel as users get it, built from the sdist; `tests/wheel.py` says what is tried with it.
wheel: .venv/dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m tests.wheel dist

clean:
	rm -rf .venv .venv-oldest site build dist leakcap-demo
