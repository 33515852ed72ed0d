# SPDX-License-Identifier: Apache-2.0
"""The front end, the engine process and the lanes that run the stages."""
