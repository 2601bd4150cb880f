# make demo: install and run the main job.  make test: install and run every check.
PYTHON ?= python3
NEWEST := .venv
OLDEST := .venv-oldest
OLDER := tests/whole/test_estimator_checks.py tests/transformers/test_containers.py tests/pipeline/test_pipeline.py \
	tests/pipeline/test_prediction.py tests/pipeline/test_gated_pipeline.py tests/interop/diffprivlib
PIP := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint types unit oldest python clean

demo: $(NEWEST)/.demo
	$(NEWEST)/bin/ppdp demo

# Both environments are made at once, and types are checked meanwhile; then the tests have the machine for themselves.
test:
	$(MAKE) -j 2 types $(OLDEST)/.test
	$(MAKE) lint unit oldest

lint: $(NEWEST)/.dev
	$(NEWEST)/bin/ruff check .
	$(NEWEST)/bin/ruff format --check .

types: $(NEWEST)/.dev
	$(NEWEST)/bin/mypy

unit: $(NEWEST)/.dev
	$(NEWEST)/bin/python -m pytest -n 2

# The estimator checks once more on the oldest supported scikit-learn, and diffprivlib, which needs an old one.
oldest: $(OLDEST)/.test
	$(OLDEST)/bin/python -m pytest $(OLDER) -n 2

$(NEWEST)/.demo: pyproject.toml | python
	test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python $(PIP) -e ".[demo]"
	touch $@

$(NEWEST)/.dev: pyproject.toml | python
	test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python $(PIP) -e ".[dev]"
	touch $@ $(NEWEST)/.demo

$(OLDEST)/.test: pyproject.toml | python
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP) -e ".[test,diffprivlib]" "scikit-learn==1.6.1"
	touch $@

python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || (echo "ppdp needs Python 3.11 or newer: make PYTHON=python3.11 ..." && exit 1)

clean:
	rm -rf $(NEWEST) $(OLDEST) artifacts
