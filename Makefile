# make setup | demo | test | test-all | reference | locale | image-check | lock | research | guard | clean.  Needs Python 3.11+ and make; everything else goes into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# All that a lock names and nothing else, by hash. uv, itself one of the build lock, is a few times as fast as pip. It knows nothing
# of pip's settings, so it is told the index; where that is not enough (a certificate, a folder), pip is asked.
LOCKED := --require-hashes --no-deps --no-build-isolation
INDEX   = $$($(BIN)/python -m pip config list 2>/dev/null | sed -n "s/.*[.]index-url='\(.*\)'$$/\1/p" | tail -n 1)

# Packages that most commands import, compiled for users who may not write into the environment.
STARTED := click jieba pydantic rich sqlalchemy yaml

.PHONY: setup demo test test-all fast lint style types reference locale image-check lock research guard clean

setup: $(STAMP)

$(STAMP): requirements.lock requirements-build.lock pyproject.toml research/pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"reviewloop needs Python 3.11 or newer, and {sys.executable} is {v.major}.{v.minor}: try  make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@echo "Setting up $(VENV) (about half a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-build.lock
	@UV_DEFAULT_INDEX="$(INDEX)" $(BIN)/uv pip install --quiet --python $(BIN)/python $(LOCKED) -r requirements.lock \
	  || { echo "uv could not; pip does it, which takes a few minutes"; $(BIN)/python -m pip install --quiet $(LOCKED) -r requirements.lock; }
	@$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable . --editable ./research
	@$(BIN)/python -m compileall -q $(addprefix $(VENV)/lib/python3*/site-packages/,$(STARTED))
	@touch $(STAMP)
	@echo "Ready. In each terminal: source $(BIN)/activate    Then: reviewloop --help"

demo: setup
	@$(BIN)/reviewloop demo

lint: style types

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# Style, types and the fast tests. mypy works beside the tests, as it has one process only; if either fails, the other is run to its end.
test: style
	@$(MAKE) --no-print-directory -j 2 types fast

# Everything: then the slow tests, and the store once more on PostgreSQL. docs/tests.md tells which test belongs to which tier.
test-all: test
	$(PYTEST) --tier slow
	$(PYTEST) --tier slow --database postgres tests/store tests/test_migrations.py

# Processes of tests share the cores: one thread each for linear algebra. WORKERS: how many processes.
WORKERS ?= 2
PYTEST   = OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal
fast: setup
	$(PYTEST) --tier fast

# The documents that are made from the code: docs/cli.md, sites-yaml.md, settings.md, and the columns in exports.md.
reference: setup
	$(BIN)/python -m research.tools.reference

# The catalogs of texts that people read: collected from the sources, then compiled. app/locale/*/LC_MESSAGES/*.po hold the translations.
locale: setup
	@$(BIN)/python -m research.catalogs

# The Dockerfile without Docker, followed step by step with the Python it names: PYTHON312.
PYTHON312 ?= python3.12
image-check: setup
	REVIEWLOOP_TEST_IMAGE_PYTHON=$(PYTHON312) $(BIN)/pytest tests/cluster/test_image.py

# The lock names no registry: hashes alone say what may be installed, wherever it comes from.
UV_LOCK = UV_DEFAULT_INDEX="$(INDEX)" $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header
lock: setup
	$(UV_LOCK) --python-version 3.11 --extra servers --extra parquet --extra browser --extra dev pyproject.toml -o requirements.lock
	$(UV_LOCK) --python-version 3.11 --extra servers --extra parquet --extra browser --extra dev --extra peers -c requirements.lock --no-emit-package reviewloop pyproject.toml research/pyproject.toml -o research/requirements.lock
	$(UV_LOCK) --python-version 3.12 -c requirements.lock pyproject.toml -o requirements-runtime.lock
	printf '%s\n' setuptools wheel uv | $(UV_LOCK) --python-version 3.11 - -o requirements-build.lock

# What the benches measure against (Scrapy, Crawlee, gevent, turbohtml) and matplotlib for their plots.
research: setup
	@$(BIN)/python -m pip install --quiet --require-hashes --no-build-isolation -r research/requirements.lock

# Fails if a page costs much more CPU time, against requests and beautifulsoup4, than docs/benchmarks.json says. About a minute.
guard: research
	$(BIN)/python -m research.bench.crawl_guard

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
