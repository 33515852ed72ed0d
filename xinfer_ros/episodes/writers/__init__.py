# SPDX-License-Identifier: Apache-2.0
"""The formats that episodes are written in."""
