/*
 * Starts threads of the library's own. The program must not notice them: they are detached, block
 * all signals, so that none of the program's handlers runs in them, and are not joined at exit.
 */
#ifndef BFC_INTERPOSE_THREAD_H
#define BFC_INTERPOSE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs `run(argument)` in a new thread. `stack_bytes` is its stack's size; 0, or a size that the C
 * library refuses, means the default. False: there is no thread. Thread-safe.
 */
bool bfc_thread_start(void *(*run)(void *argument), void *argument, size_t stack_bytes);

#endif
