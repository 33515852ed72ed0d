# SPDX-License-Identifier: Apache-2.0
"""Tests of the gateway; time is virtual, sockets are real."""
