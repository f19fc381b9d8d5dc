# make setup | demo | test | lock | bench-peers | clean.  Needs Python 3.11+ and make; everything else goes into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: setup demo test lint lock bench-peers clean

setup: $(STAMP)

$(STAMP): requirements.lock requirements-build.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"reviewloop needs Python 3.11 or newer, and {sys.executable} is {v.major}.{v.minor}: try  make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@echo "Setting up $(VENV) (about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-build.lock
	@$(BIN)/python -m pip install --quiet --require-hashes --no-build-isolation -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $(STAMP)

demo: setup
	@$(BIN)/reviewloop demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Two processes of tests share the cores: one thread each for linear algebra.
test: export OPENBLAS_NUM_THREADS = 1
test: lint
	$(BIN)/pytest -n auto --dist worksteal

# The lock names no registry: hashes alone say what may be installed, wherever it comes from.
lock: setup
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --extra servers --extra dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --extra servers --extra dev --extra bench pyproject.toml -o requirements-bench.lock
	echo setuptools wheel | tr ' ' '\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header - -o requirements-build.lock

# What the benches measure against (Scrapy, Crawlee, gevent) and matplotlib for their plots.
bench-peers: setup
	@$(BIN)/python -m pip install --quiet --require-hashes --no-build-isolation -r requirements-bench.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
