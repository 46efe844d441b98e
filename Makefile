# SPDX-License-Identifier: Apache-2.0
# Short names for the usual commands; CMakeLists.txt is the build.
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
CMAKE_ARGS ?=
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Ninja where it exists; a folder keeps the generator it was made with.
GENERATOR = $(if $(wildcard $(BUILD)/CMakeCache.txt),,$(if $(shell command -v ninja 2>/dev/null),-G Ninja))

.PHONY: all setup test demo bench check-all mutate install format fuzz experiments clean
all: setup
	@cmake -S . -B $(BUILD) $(GENERATOR) $(CMAKE_ARGS) >/dev/null
	cmake --build $(BUILD) -j $(JOBS)
setup:
	@scripts/setup.sh
test: all
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)
demo: setup # builds what it runs, and shows that only where it fails
	@cmake -S . -B $(BUILD) $(GENERATOR) $(CMAKE_ARGS) >/dev/null
	@echo "Building $(BUILD)/unicon ..."
	@cmake --build $(BUILD) -j $(JOBS) --target unicon_command >$(BUILD)/demo.log 2>&1 || { cat $(BUILD)/demo.log; exit 1; }
	@UNICON=$(BUILD)/unicon scripts/demo.sh
bench: all
	cmake --build $(BUILD) -j $(JOBS) --target bench
	@for program in $(filter-out bench/bench_mpi.c,$(wildcard bench/bench_*.c)); do program=$(BUILD)/bench/$$(basename $$program .c); echo "$$program"; "$$program" || exit 1; done
check-all:
	scripts/check_all.sh
mutate:
	scripts/mutate.py
install: all
	cmake --install $(BUILD) --prefix $(PREFIX)
format:
	scripts/check_format.sh --fix
fuzz:
	scripts/fuzz.sh $(FUZZ_SECONDS)
experiments: all
	-@scripts/setup.sh --experiments
	@UNICON=$(abspath $(BUILD))/unicon experiments/run.sh
clean:
	rm -rf $(BUILD) build-*
