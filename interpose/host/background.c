/* Background work: two flags, by which a piece of work and the process's exit see each other. */
#include "interpose/host/background.h"

#include <stddef.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"

static __thread bool is_background INITIAL_EXEC;
static bool working, stopping; /* atomic */

void bfc_background_enter(void) {
    is_background = true;
}

bool bfc_background_is_over(void) {
    return bfc_load_seq_cst(&stopping);
}

bool bfc_background_is_stopped(void) {
    return is_background && bfc_background_is_over();
}

/* Publishes `working`, then checks `stopping`; a stop does the reverse. So of a piece of work and a
 * stop that begin together, at least one sees the other. */
bool bfc_background_begin(void) {
    bfc_store_seq_cst(&working, true);
    if (!bfc_background_is_stopped())
        return true;
    bfc_background_end();
    return false;
}

void bfc_background_end(void) {
    bfc_store_release(&working, false);
}

void bfc_background_stop(uint64_t longest_ns) {
    bfc_store_seq_cst(&stopping, true);
    uint64_t start = bfc_now_ns();
    while (bfc_load_seq_cst(&working) && bfc_now_ns() - start < longest_ns)
        bfc_nap(50000);
}
