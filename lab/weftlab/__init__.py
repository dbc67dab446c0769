# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab: descriptions of experiments, the programs that they name, and reports of the measurements."""
