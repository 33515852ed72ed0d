# SPDX-License-Identifier: Apache-2.0
"""Which stage of which request may start next: values in, decisions out."""
