# SPDX-License-Identifier: MIT OR Apache-2.0
#
# cmake --toolchain cmake/riscv64.cmake: see docs/reference/architectures.md.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
