/* Whether hooks count submissions in this process. */
#include "interpose/submission/enclose.h"

#include "interpose/config/log.h"
#include "interpose/config/process.h"

void bfc_submissions_begin_process(void) {
    bfc_only_stream_begin_process();
    bfc_submissions_are_counted = true;
}

void bfc_submissions_may_hide(const char *what) {
    if (bfc_process_is_forked() || !bfc_submissions_hide(what))
        return;
    bfc_only_stream_bar();
    bfc_log(BFC_LOG_INFO, "BFC_GATE is off from now on, because work may be submitted unseen: %s",
            what);
}
