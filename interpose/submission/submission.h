/*
 * Submissions: the program's calls that give the device work which may use device memory.
 *
 * The hook of each such call is enclosed in a beginning and an end (enclose.h). So the library
 * knows whether work was submitted since some moment. Submissions are counted only in a process
 * that BFC_GATE chooses, and until a call is looked up that may submit work unseen. Thread-safe.
 */
#ifndef BFC_INTERPOSE_SUBMISSION_H
#define BFC_INTERPOSE_SUBMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* What a thread has submitted. Only the thread itself writes `count`. */
struct bfc_submitter {
    uint64_t count; /* atomic; odd: the thread is inside a submission; 0: it made none yet */
    struct bfc_submitter *next;
    bool leaves_at_exit;
};
extern __thread struct bfc_submitter bfc_submitter INITIAL_EXEC HIDDEN;

/* Whether hooks count submissions; set before a program is given the first hook, if at all. */
extern bool bfc_submissions_are_counted HIDDEN;

/* Adds the calling thread to those whose submissions are counted; returns its count, which is even.
 * A forked child counts nothing. */
uint64_t bfc_submitter_begin(void);

/*
 * Sums up the submissions of all threads. False: a thread is inside one, or some may be unseen.
 * While the sum is the same, no work was submitted: all that was submitted before the first of two
 * calls had ended its submission then.
 */
bool bfc_submissions_count(uint64_t *sum);

/* From now on some submissions may be unseen, because of `what`: nothing is known of them any more.
 * False: that was so before. */
bool bfc_submissions_hide(const char *what);

/*
 * Once the process exits, frees ask the driver again, which answers each with an error when it has
 * ended itself. To be called when the driver works: exit runs handlers in reverse order, so ours
 * runs before the driver's.
 */
void bfc_submissions_stop_at_exit(void);

/* Why submissions are not known, or NULL. */
const char *bfc_submissions_hidden_by(void);

#endif
