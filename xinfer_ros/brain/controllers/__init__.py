# SPDX-License-Identifier: Apache-2.0
"""The rules of the controllers: when one more episode may come, and when one has to go."""
