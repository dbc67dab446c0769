# SPDX-License-Identifier: MIT OR Apache-2.0
#
# cmake --toolchain cmake/aarch64.cmake: see docs/reference/architectures.md.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
