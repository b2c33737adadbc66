/*
 * What the hooks of calls that submit work do besides their call: they count it (submission.h) and
 * compare its stream with the only one (only_stream.h). Thread-safe.
 */
#ifndef BFC_INTERPOSE_ENCLOSE_H
#define BFC_INTERPOSE_ENCLOSE_H

#include "interpose/submission/only_stream.h"
#include "interpose/submission/submission.h"

/* To be called before any hook is given out, if submissions are to be counted. */
void bfc_submissions_begin_process(void);

/* From now on some submissions may be unseen, because of `what`, which the log names. */
void bfc_submissions_may_hide(const char *what);

/*
 * Enclose a call that submits work to `stream`; `per_thread`: stream 0 is the thread's own default
 * stream. bfc_submission_begin returns what bfc_submission_end takes. If the process's only stream
 * is another one, the work of that one is ordered before this call first.
 *
 * The count rises before the stream is compared, and whoever changes the only stream reads the
 * counts afterwards: of the two, one sees the other.
 */
static ALWAYS_INLINE uint64_t bfc_submission_begin(CUstream stream, bool per_thread) {
    if (LIKELY(!bfc_submissions_are_counted))
        return 0;
    uint64_t before = bfc_submitter.count;
    if (UNLIKELY(!before))
        before = bfc_submitter_begin();
    bfc_exchange_seq_cst(&bfc_submitter.count, (before | 1) + 2);
    bfc_only_stream_check(bfc_stream_of_handle(stream, per_thread));
    return before + 2;
}

static ALWAYS_INLINE void bfc_submission_end(uint64_t after) {
    if (UNLIKELY(after))
        bfc_store_release(&bfc_submitter.count, after);
}

#endif
