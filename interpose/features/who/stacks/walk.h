/*
 * Walks the calling thread's native call stack, by unwind tables where a loaded object has them,
 * else by frame pointers. A frame that cannot be read ends the walk, so the result may be too
 * short, but the walk never fails. The walk goes on through signal handlers, alternate stacks and
 * coroutines. Thread-safe; allocates nothing.
 */
#ifndef BFC_INTERPOSE_WALK_H
#define BFC_INTERPOSE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the addresses of the calls on the stack, innermost first, except those in this library,
 * and returns how many: at most `most`. `in_handler` is set to whether the thread is in a signal
 * handler. */
size_t bfc_walk_stack(uint64_t *calls, size_t most, bool *in_handler);

#endif
