// What each route's program does with the memory calls that it found in its own way.
//
// The same little job every time, so that natively and preloaded the output must be the same, while
// preloaded the driver sees few allocations (tests/integration/interpose/same.sh counts them).
#ifndef TESTS_ROUTES_ROUTE_H
#define TESTS_ROUTES_ROUTE_H

#include <stddef.h>
#include <stdint.h>

// The driver's calls, in types that need no CUDA header.
struct route {
    int (*allocate)(uint64_t *pointer, size_t bytes);
    int (*release)(uint64_t pointer);
    int (*set)(uint64_t pointer, unsigned char value, size_t count);
    int (*read)(void *to, uint64_t from, size_t bytes);
};

// 200 allocations, filled, read back and freed; prints sums and the answers to bad calls. Exit
// status: 0 when every byte was right.
int route_run(const struct route *route);

// Makes the primary context of device 0 current by calls looked up in a handle of libcuda.
void route_begin(void *libcuda);

// Looks up in a handle, or ends the program.
void *route_find(void *handle, const char *name);

// Ends the program with a line on standard error.
_Noreturn void route_fail(const char *what, const char *why);

#endif
