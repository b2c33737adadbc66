/* Submissions: the program's calls that give the device work, counted over all threads. The hooks
 * of such calls count them in each thread (interpose/table/counter.h). Thread-safe. */
#ifndef BFC_INTERPOSE_SUBMISSIONS_H
#define BFC_INTERPOSE_SUBMISSIONS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* To be called at the calling thread's first submission: adds the thread to those that
 * bfc_submissions_count sums up. In a forked child, nothing is counted. */
void bfc_submitter_begin(void);

/*
 * Stores the sum of the submissions of all threads. False: a thread is inside a submission, or some
 * submissions may be unseen. If two calls return true with the same sum, no work was submitted
 * between them.
 */
bool bfc_submissions_count(uint64_t *sum);

/*
 * Has the kernel run a memory barrier in every thread of the process. After that,
 * bfc_submissions_count finds each submission that another thread had begun, and each submission
 * that begins later reads what the caller wrote before the barrier. False: the kernel cannot do
 * that (Linux before 4.14, or a sandbox).
 */
bool bfc_submissions_barrier(void);

/* Notes that the calling thread submits work to the stream, so that bfcstat can show how many
 * streams had work. */
void bfc_submissions_note_stream(CUstream stream);

/* Notes that work may be submitted by calls without a hook, because of `what`: from now on
 * bfc_submissions_count returns false. Returns false if that was so already. */
bool bfc_submissions_hide(const char *what);

/*
 * Registers an exit handler that makes submissions count as unseen. Frees then call the driver
 * again, and so return the driver's error once the driver has ended, as they do natively. To be
 * called after the driver was initialised: exit handlers run in reverse order, so ours then runs
 * before the driver's.
 */
void bfc_submissions_stop_at_exit(void);

/* Returns why submissions may be unseen; NULL: all are seen. */
const char *bfc_submissions_hidden_by(void);

#endif
