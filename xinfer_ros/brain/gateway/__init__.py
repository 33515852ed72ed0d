# SPDX-License-Identifier: Apache-2.0
"""The gateway: an OpenAI-compatible proxy that admits episodes, before one or several servers."""
