# SPDX-License-Identifier: Apache-2.0
"""Serves a fleet of robots that run vision-language-action models on one GPU."""
