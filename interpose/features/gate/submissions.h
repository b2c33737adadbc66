/* The submissions of all threads (interpose/table/counter.h). Thread-safe. */
#ifndef BFC_INTERPOSE_SUBMISSIONS_H
#define BFC_INTERPOSE_SUBMISSIONS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Adds the calling thread to those whose submissions are counted. A forked child counts nothing. */
void bfc_submitter_begin(void);

/*
 * Sums up the submissions of all threads. False: a thread is inside one, or some may be unseen.
 * While the sum is the same, no work was submitted: all that was submitted before the first of two
 * calls had ended its submission then.
 */
bool bfc_submissions_count(uint64_t *sum);

/*
 * Has the kernel run a memory barrier in every thread of the process. What the caller wrote before,
 * a thread reads as it begins a submission, unless bfc_submissions_count finds that submission from
 * now on. False: the kernel cannot (Linux before 4.14, or a sandbox).
 */
bool bfc_submissions_barrier(void);

/* Notes, for bfcstat, that the calling thread submits work to the stream. */
void bfc_submissions_note_stream(CUstream stream);

/* From now on some submissions may be unseen, because of `what`: nothing is known of them any more.
 * False: that was so before. */
bool bfc_submissions_hide(const char *what);

/*
 * Once the process exits, submissions count as unseen, so that frees ask the driver again: when the
 * driver has ended, it answers each with an error. To be called when the driver works: exit runs
 * handlers in reverse order, so ours runs before the driver's.
 */
void bfc_submissions_stop_at_exit(void);

/* Why submissions are not known, or NULL. */
const char *bfc_submissions_hidden_by(void);

#endif
