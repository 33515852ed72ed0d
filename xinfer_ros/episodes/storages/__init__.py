# SPDX-License-Identifier: Apache-2.0
"""The kinds of files that a bag is stored in."""
