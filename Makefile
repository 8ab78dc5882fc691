# `make demo` and `make test` need only Python, gcc and make: they set up a virtual environment in .venv by themselves.

PYTHON  ?= python3
SECONDS ?= 600
RESULTS ?= results
DATA ?= datasets/zoo
TORCH   := torch==2.13.0
METASCHEDULE := apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1 xgboost-cpu==3.2.0 cloudpickle psutil

BIN       := .venv/bin
INSTALLED := .venv/.installed
DEVELOP   := .venv/.develop-installed
NATIVE    := $(wildcard src/tilewright/runtime/native/*.[ch])

CROSS_PACKAGES := qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross
HAVE_CROSS     := command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null && command -v riscv64-linux-gnu-gcc >/dev/null

.PHONY: help install demo test lint format bench bench-tuning bench-scoring bench-operators bench-products bench-metaschedule bench-efficiency bench-ablation bench-tuner bench-networks bench-integers bench-deployed bench-scheduler bench-loading bench-importing bench-fleet bench-calibration bench-cost-models bench-cost-models-tuning bench-autotvm pretrained fuzz qemu cross-tools hooks clean

help:
	@echo "make demo    tune ResNet-18 for a minute: its speed before, after, and next to onnxruntime if that is installed"
	@echo "make test    all tests"
	@echo "make lint    ruff and strict types;  make format  rewrites the files"
	@echo "make bench   the table of the README, measured here"
	@echo "make bench-tuner     what the tuner must show, all of it; hours. Its parts: bench-tuning, bench-scoring,"
	@echo "                     bench-operators, bench-efficiency, bench-ablation; records are kept in RESULTS=$(RESULTS)"
	@echo "make bench-products  matrix products next to OpenBLAS and torch, on one thread and two; half an hour"
	@echo "make bench-metaschedule tuning next to TVM MetaSchedule, which gets an environment of its own; a quarter of an hour"
	@echo "make bench-networks  networks with zero trials and tuned, next to onnxruntime and openvino; over an hour"
	@echo "make bench-integers  quantized networks with zero trials, next to onnxruntime; minutes"
	@echo "make bench-deployed  what the tuner says of networks next to what they take; a quarter of an hour"
	@echo "make bench-scheduler the gradient task scheduler next to round-robin; half an hour"
	@echo "make bench-loading   how long a compiled resnet50 takes to load, and its memory, next to onnxruntime"
	@echo "make bench-calibration programs with zero trials before and after calibrating this machine; half an hour"
	@echo "make bench-cost-models how well cost models rank networks and devices they have not seen; hours. DATA=$(DATA)"
	@echo "                     are datasets that tilewright measured, LOGS= those of logs of other tools"
	@echo "make bench-cost-models-tuning what networks come to when each cost model guides their tuning; hours"
	@echo "make bench-autotvm   searches, learning, transfer and templates on the convolutions of ResNet-18; many hours."
	@echo "                     LOGS= adds the table of logs of other tools"
	@echo "make pretrained  train the cost model that ships, on DATA=$(DATA)"
	@echo "make bench-importing how long models of 100,000 nodes take to import; minutes"
	@echo "make bench-fleet trials a second of a fleet, by its devices; overhead, memory, networks, faults; three quarters of an hour"
	@echo "make fuzz    random schedules, graphs and damaged files for SECONDS=$(SECONDS)"
	@echo "make qemu    only the tests that run aarch64 code"
	@echo "make hooks   install the pre-commit hooks"

install: $(DEVELOP)

# Depends on the C sources too: an editable install builds the extension once, in place.
$(INSTALLED): pyproject.toml setup.py $(NATIVE)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { \
	  rm -rf .venv; echo "make: $(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# The tools and the peers: tests compare with them. torch alone first, so that its pin decides before anything else.
$(DEVELOP): $(INSTALLED)
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/python -m examples.demo

test: $(DEVELOP) cross-tools
	@if $(HAVE_CROSS); then \
	  set -x; $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadscope; \
	else \
	  echo "not run: tests marked qemu (they need the Debian packages $(CROSS_PACKAGES))"; \
	  set -x; $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadscope -m "not qemu"; \
	fi

lint: $(DEVELOP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(DEVELOP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(DEVELOP)
	$(BIN)/python -m benchmarks.kernels

bench-tuning: $(DEVELOP)
	$(BIN)/python -m benchmarks.tuning

bench-scoring: $(DEVELOP)
	$(BIN)/python -m benchmarks.scoring

bench-operators: $(DEVELOP)
	$(BIN)/python -m benchmarks.operators --records $(RESULTS)/operators

bench-products: $(DEVELOP)
	$(BIN)/python -m benchmarks.products --records $(RESULTS)/products

# Never in .venv: TVM is a peer, and brings versions of its own.
.venv-metaschedule/.installed:
	$(PYTHON) -m venv .venv-metaschedule
	.venv-metaschedule/bin/python -m pip install --quiet $(METASCHEDULE)
	@touch $@

bench-metaschedule: $(DEVELOP) .venv-metaschedule/.installed
	$(BIN)/python -m benchmarks.metaschedule

bench-efficiency: $(DEVELOP)
	$(BIN)/python -m benchmarks.sample_efficiency --records $(RESULTS)/efficiency

bench-ablation: $(DEVELOP)
	$(BIN)/python -m benchmarks.ablation --records $(RESULTS)/ablation --plot $(RESULTS)/ablation.png

bench-networks: $(DEVELOP)
	$(BIN)/python -m benchmarks.networks --records $(RESULTS)/networks

bench-integers: $(DEVELOP)
	$(BIN)/python -m benchmarks.integers --records $(RESULTS)/integers

bench-deployed: $(DEVELOP)
	$(BIN)/python -m benchmarks.deployed --records $(RESULTS)/deployed

bench-scheduler: $(DEVELOP)
	$(BIN)/python -m benchmarks.scheduling --records $(RESULTS)/scheduler --plot $(RESULTS)/scheduler.png

bench-loading: $(DEVELOP)
	$(BIN)/python -m benchmarks.loading

bench-importing: $(INSTALLED)
	$(BIN)/python -m benchmarks.importing

bench-fleet: $(DEVELOP)
	$(BIN)/python -m benchmarks.fleet

bench-calibration: $(INSTALLED)
	$(BIN)/python -m benchmarks.calibration --records $(RESULTS)/calibration

bench-cost-models: $(DEVELOP)
	$(BIN)/python -m benchmarks.cost_models --data $(DATA) $(if $(LOGS),--logs $(LOGS)) --results $(RESULTS)/cost_models --plots $(RESULTS)

bench-cost-models-tuning: $(DEVELOP)
	$(BIN)/python -m benchmarks.cost_models_tuning --data $(DATA) --records $(RESULTS)/cost_models_tuning --plot $(RESULTS)/cost_models_tuning.png

# A table that falls short does not keep the next from being made.
bench-autotvm: $(DEVELOP)
	status=0; for table in search learning transfer templates $(if $(LOGS),logs); do \
	  $(BIN)/python -m benchmarks.autotvm --table $$table $(if $(LOGS),--logs $(LOGS)) --records $(RESULTS)/autotvm --plots $(RESULTS) || status=1; \
	done; exit $$status

pretrained: $(INSTALLED)
	$(BIN)/tilewright model train factor-trees --data $(DATA) -o src/tilewright/cost_model/pretrained/default.npz
	$(BIN)/python -m tests.tuning.write_default_programs

bench-tuner: bench-tuning bench-scoring bench-operators bench-efficiency bench-ablation

fuzz: $(DEVELOP)
	$(BIN)/python -m tilewright.testing.fuzz all --seconds $(SECONDS) --jobs 2

qemu: $(DEVELOP) cross-tools
	@$(HAVE_CROSS) || { echo "make: install the Debian packages $(CROSS_PACKAGES) first" >&2; exit 1; }
	$(BIN)/python -m pytest -m qemu

# Installs the cross compiler and emulator where that needs no password; otherwise leaves things as they are.
cross-tools:
	@$(HAVE_CROSS) || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || { \
	  echo "installing $(CROSS_PACKAGES)"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $(CROSS_PACKAGES) >/dev/null; \
	} || echo "apt-get failed"

hooks: $(DEVELOP)
	$(BIN)/pre-commit install

clean:
	rm -rf .venv .venv-metaschedule build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache
	find src -name '*.so' -delete
