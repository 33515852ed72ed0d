# SPDX-License-Identifier: Apache-2.0
"""The nodes: parameters to configuration, messages to dataclasses."""
