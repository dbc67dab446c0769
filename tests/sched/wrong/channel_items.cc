// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::channel<T>: T must be an object that can be moved */
#include <weft/sched.hpp>

weft::channel<int &> chan;
