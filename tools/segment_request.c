/* The reader's half of the request protocol. */
#include "tools/segment_request.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tools/segment_file.h"

struct asking {
    bool refresh;
    uint64_t bytes; /* to trim */
    unsigned timeout_ms;
    uint64_t released;
    enum bfc_ask_result result;
};

/* Adds, but not beyond the end: the job takes what stands there as one number. */
static void add_saturating(uint64_t *word, uint64_t bytes) {
    _Atomic uint64_t *atomic = (_Atomic uint64_t *)word;
    uint64_t before = atomic_load(atomic), after;
    do
        after = before > UINT64_MAX - bytes ? UINT64_MAX : before + bytes;
    while (!atomic_compare_exchange_weak(atomic, &before, after));
}

/* Looks once a millisecond: whether a futex of another process is woken is its business. */
static bool wait_until_served(const struct bfc_segment_header *header, uint32_t request,
                              unsigned timeout_ms) {
    const _Atomic uint32_t *served = (const _Atomic uint32_t *)&header->request_served;
    for (unsigned waited = 0;; waited++) {
        if ((int32_t)(atomic_load(served) - request) >= 0)
            return true;
        if (waited >= timeout_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static enum bfc_read_result ask(const struct reading *reading, void *context) {
    struct asking *asking = context;
    struct bfc_segment_header *header = (struct bfc_segment_header *)(void *)reading->base;
    const _Atomic uint64_t *released = (const _Atomic uint64_t *)&header->released_bytes;
    uint64_t before = atomic_load(released);
    bool has_helper = header->owner & FUTEX_TID_MASK && !(header->owner & FUTEX_OWNER_DIED);
    if (asking->refresh)
        atomic_fetch_add((_Atomic uint32_t *)&header->refresh_asked, 1);
    else
        add_saturating(&header->request_bytes, asking->bytes);
    uint32_t request = atomic_fetch_add((_Atomic uint32_t *)&header->request, 1) + 1;
    syscall(SYS_futex, &header->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    bool served = has_helper && wait_until_served(header, request, asking->timeout_ms);
    asking->result = served ? BFC_ASK_DONE : BFC_ASK_UNANSWERED;
    asking->released = atomic_load(released) - before;
    return BFC_READ_OK;
}

static enum bfc_ask_result ask_by_name(int directory, const struct bfc_segment_name *name,
                                       struct asking *asking, char *reason, size_t size) {
    struct reading reading = {.name = name, .reason = reason, .reason_size = size};
    enum bfc_read_result result = segment_visit_file(directory, &reading, true, ask, asking);
    return result == BFC_READ_OK ? asking->result : BFC_ASK_REFUSED;
}

enum bfc_ask_result bfc_segment_refresh(int directory, const struct bfc_segment_name *name,
                                        unsigned timeout_ms, char *reason, size_t size) {
    struct asking asking = {.refresh = true, .timeout_ms = timeout_ms};
    return ask_by_name(directory, name, &asking, reason, size);
}

enum bfc_ask_result bfc_segment_trim(int directory, const struct bfc_segment_name *name,
                                     uint64_t bytes, unsigned timeout_ms, uint64_t *released,
                                     char *reason, size_t size) {
    struct asking asking = {.bytes = bytes, .timeout_ms = timeout_ms};
    enum bfc_ask_result result = ask_by_name(directory, name, &asking, reason, size);
    *released = asking.released;
    return result;
}
