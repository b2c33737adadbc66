/*
 * Work of ours in the background, in a thread of our own, which must not call the driver once the
 * process is on its way out.
 */
#ifndef BFC_INTERPOSE_BACKGROUND_H
#define BFC_INTERPOSE_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

/* The calling thread is the one in the background. */
void bfc_background_enter(void);

/* Before and after what may call the driver, in that thread. False: it may not any more. */
bool bfc_background_begin(void);
void bfc_background_end(void);

/* No more work from now on; waits for what is under way, but no longer than this. */
void bfc_background_stop(uint64_t longest_ns);

/* Whether the process is on its way out. */
bool bfc_background_is_over(void);

/* Whether the calling thread is the one in the background, and was stopped. */
bool bfc_background_is_stopped(void);

#endif
