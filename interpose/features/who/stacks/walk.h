/*
 * The calling thread's native call stack.
 *
 * Frame by frame by the unwind tables where an object has any, else by frame pointers; a frame that
 * cannot be read, or leads nowhere, ends the walk. It never fails: at worst it is short. Signal
 * handlers, alternate stacks and coroutines are walked like anything else. Thread-safe; allocates
 * nothing. Some 100 bytes of stack.
 */
#ifndef BFC_INTERPOSE_WALK_H
#define BFC_INTERPOSE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the addresses of the calls that are under way, innermost first, without those in this
 * library; at most `most`. Returns how many. `in_handler`: whether a signal handler is among them.
 */
size_t bfc_walk_stack(uint64_t *calls, size_t most, bool *in_handler);

#endif
