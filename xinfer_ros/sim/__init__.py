# SPDX-License-Identifier: Apache-2.0
"""A fleet in virtual time, under the same scheduler as the engine's."""
