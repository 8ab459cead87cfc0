# `make demo` and `make test` prepare .venv if need be; neither needs more than Python 3.11 and a
# C++ compiler. PYTHON picks another interpreter; TORCH=2.15.0 another torch than the one that is
# pinned, in a virtual environment of its own.
PYTHON ?= python3
TORCH ?=
VENV := .venv$(TORCH:%=-torch-%)
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TEST_READY := $(VENV)/.test-ready
PINS := $(VENV)/constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(PINS)
IN_PARALLEL := --ignore tests/integration --numprocesses auto --dist worksteal
# Tests with worker processes wait half of the time. Those of a file may share a run; files that
# take long come first (tests/integration/conftest.py).
WITH_WORKERS := tests/integration --numprocesses 4 --dist loadfile --no-loadscope-reorder
CODE := $(wildcard *.py) common dynamo models results dynamometer bench examples tests

.PHONY: setup same-python demo test test-fast test-gpu check-timing coverage lint clean

setup: $(READY)

# Where PYTHON is given, an environment of another version is refused.
VERSION := -c 'import sys; print("%d.%d" % sys.version_info[:2])'
same-python:
	@test ! -e $(BIN)/python || test "$$($(PYTHON) $(VERSION))" = "$$($(BIN)/python $(VERSION))" || \
	    { echo '$(VENV) is not of $(PYTHON): remove it first, or leave PYTHON out' >&2; exit 2; }

$(READY): | $(if $(filter environment command,$(origin PYTHON)),same-python)

# torch first and alone: its pin decides which build everything else is installed beside.
$(READY): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	sed $(if $(TORCH),-e 's/^torch==.*/torch==$(TORCH)/' -e '/^\(torchvision\|setuptools\)==/d') -e '' \
	    constraints.txt > $(PINS)
	$(PIP) torch
	$(PIP) --editable '.[models]'
	touch $(READY)

$(TEST_READY): $(READY)
	$(PIP) --editable '.[models,onnx,openvino,parquet,test]'
	touch $(TEST_READY)

demo: $(READY)
	$(BIN)/python torchbench.py --quick

lint: $(TEST_READY)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy -p dynamometer
	$(BIN)/lint-imports

# Types are those of the torch that is pinned.
test: $(if $(TORCH),$(TEST_READY),lint)
	$(BIN)/python -m pytest -m 'not gpu' $(IN_PARALLEL)
	$(BIN)/python -m pytest -m 'not gpu' $(WITH_WORKERS)

test-fast: $(TEST_READY)
	$(BIN)/python -m pytest -m 'not gpu and not slow' --hypothesis-profile fast \
	    --durations 5 --durations-min 1 $(IN_PARALLEL)

# What needs a real clock, again and again, and how often it went as it should: no verdict.
check-timing: $(TEST_READY)
	$(BIN)/python bench/check_timing.py

# Counts frames, of which coverage.py adds some.
NOT_TRACED := --deselect tests/integration/test_run.py::test_capture_is_counted_for_each_arm

# Which branches the tests take, in workers and their servers as well; fails below what is asked.
coverage: $(TEST_READY)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m 'not gpu' $(IN_PARALLEL)
	$(BIN)/coverage run -m pytest -m 'not gpu' $(NOT_TRACED) $(WITH_WORKERS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under 92

# On a CUDA machine, without network and without a virtual environment of its own: python3 holds
# torch, timm and transformers there, and PYTHONPATH what else the core needs.
test-gpu:
	$(PYTHON) -m pytest -m gpu tests/gpu --durations=5
	$(PYTHON) torchbench.py -d cuda -r 1 --backend inductor --backend inductor:reduce-overhead \
	    --only resnet18 --only resnet50 --only timm_vision_transformer --only hf_Bert --only dcgan

clean:
	rm -rf .venv .venv-torch-* build dist *.egg-info
