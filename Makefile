# SPDX-License-Identifier: Apache-2.0
# `make fleet` and `make test` are all that a newcomer needs; both set up what is missing.

PYTHON   ?= python3
ROS      ?= kilted#            ROS 2 wheels to use: kilted or jazzy
ROBOTS   ?= 4
DURATION ?= 30
ARGS     ?=

VENV  := .venv
BIN   := $(VENV)/bin
PIP   := $(BIN)/python -m pip --disable-pip-version-check
ROS   := $(strip $(ROS))
WHEELS := requirements/torch.txt requirements/runtime.txt requirements/dev.txt \
          requirements/ros-$(ROS).txt requirements/ros-$(ROS)-build.txt
BUILT_FROM := package.xml CMakeLists.txt setup.py pyproject.toml $(wildcard cmake/* src/* action/* msg/* srv/* launch/* \
              config/* web/* episodes/*/metadata.yaml)

# Nothing that is started from here talks to another machine
export ROS_AUTOMATIC_DISCOVERY_RANGE ?= LOCALHOST

.DEFAULT_GOAL := help
.PHONY: help setup fleet test check clean

help:  ## show this help
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

setup: $(VENV)/built.stamp  ## make the venv, install the pinned packages, build the interfaces

$(VENV)/installed.stamp: $(WHEELS)
	@test -x $(BIN)/python || { echo '[1/4] virtual environment'; $(PYTHON) -m venv $(VENV); }
	@echo '[2/4] PyTorch (the largest download)'
	@$(PIP) install --quiet -r requirements/torch.txt
	@echo '[3/4] ROS 2 $(ROS) and the other packages'
	@$(PIP) install --quiet -r requirements/torch.txt -r requirements/runtime.txt -r requirements/dev.txt \
	  -r requirements/ros-$(ROS).txt -r requirements/ros-$(ROS)-build.txt
	@touch $@

$(VENV)/built.stamp: $(VENV)/installed.stamp $(BUILT_FROM)
	@echo '[4/4] interfaces and scheduler (CMake, about a minute)'
	@$(PIP) install --quiet --no-build-isolation --no-deps --editable . > $(VENV)/build.log 2>&1 \
	  || { tail -n 40 $(VENV)/build.log; echo 'the whole log: $(VENV)/build.log'; exit 1; }
	@test -f $(VENV)/share/xinfer_ros/web/vendor/uPlot.iife.min.js \
	  || echo 'the live page has no charts: npm is missing or reaches no registry. Then: rm $@; make setup'
	@touch $@

fleet: setup  ## run a server and ROBOTS=4 robots for DURATION=30 seconds on recorded episodes
	@$(BIN)/xinfer fleet --robots $(ROBOTS) --duration $(DURATION) $(ARGS)

test: setup  ## run every test
	@$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

check: setup  ## lint, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

clean:  ## remove the venv and everything generated
	rm -rf $(VENV) build install log xinfer_ros/action xinfer_ros/msg xinfer_ros/srv xinfer_ros/*.so *.egg-info .pytest_cache \
	  .mypy_cache .ruff_cache .hypothesis
