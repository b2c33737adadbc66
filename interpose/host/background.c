/* Work of ours in the background. */
#include "interpose/host/background.h"

#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"

static __thread bool is_background INITIAL_EXEC;
static bool working, stopping; /* atomic */

void bfc_background_enter(void) {
    is_background = true;
}

bool bfc_background_is_stopped(void) {
    return is_background && __atomic_load_n(&stopping, __ATOMIC_SEQ_CST);
}

/* Published, then checked: of a piece of work and a stop that begin together one sees the other. */
bool bfc_background_begin(void) {
    __atomic_store_n(&working, true, __ATOMIC_SEQ_CST);
    if (!bfc_background_is_stopped())
        return true;
    bfc_background_end();
    return false;
}

void bfc_background_end(void) {
    __atomic_store_n(&working, false, __ATOMIC_RELEASE);
}

void bfc_background_stop(uint64_t longest_ns) {
    __atomic_store_n(&stopping, true, __ATOMIC_SEQ_CST);
    uint64_t start = bfc_now_ns();
    while (__atomic_load_n(&working, __ATOMIC_SEQ_CST) && bfc_now_ns() - start < longest_ns)
        bfc_nap(50000);
}
