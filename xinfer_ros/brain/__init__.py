# SPDX-License-Identifier: Apache-2.0
"""Episodes of agents before an LLM server: who may run, so that the prefix cache holds them."""
