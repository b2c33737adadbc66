/* Units of memory, in bytes. */
#ifndef BFC_BASE_SIZES_H
#define BFC_BASE_SIZES_H

#include <stdint.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

#endif
