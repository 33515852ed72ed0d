# SPDX-License-Identifier: Apache-2.0
"""Other servers, driven by the robots of the benchmark, for its numbers to be compared with."""
