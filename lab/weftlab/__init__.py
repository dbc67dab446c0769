# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab: descriptions of experiments, the programs they name, and what is made of the figures."""
