/* The request words of another job's segment. */
#include "segment/request.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/numbers.h"

bool bfc_segment_has_helper(const struct bfc_segment_header *header) {
    uint32_t owner = __atomic_load_n(&header->owner, __ATOMIC_ACQUIRE);
    return (owner & FUTEX_TID_MASK) && !(owner & FUTEX_OWNER_DIED);
}

/* Adds to or subtracts from the requested bytes, saturating, since the job reads the sum of all
 * requests as one number. */
static void change_bytes(uint64_t *word, uint64_t (*change)(uint64_t, uint64_t), uint64_t bytes) {
    uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
    do
        after = change(before, bytes);
    while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED));
}

static struct bfc_request begin_request(struct bfc_segment_header *header, uint64_t bytes) {
    return (struct bfc_request){.header = header,
                                .bytes = bytes,
                                .released_before =
                                    __atomic_load_n(&header->released_bytes, __ATOMIC_ACQUIRE)};
}

static void send_request(struct bfc_request *request) {
    uint32_t *word = &request->header->request;
    request->number = __atomic_add_fetch(word, 1, __ATOMIC_ACQ_REL);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

struct bfc_request bfc_request_trim(struct bfc_segment_header *header, uint64_t bytes) {
    struct bfc_request request = begin_request(header, bytes);
    change_bytes(&header->request_bytes, bfc_add_saturating, bytes);
    send_request(&request);
    return request;
}

struct bfc_request bfc_request_refresh(struct bfc_segment_header *header) {
    struct bfc_request request = begin_request(header, 0);
    __atomic_fetch_add(&header->refresh_asked, 1, __ATOMIC_ACQ_REL);
    send_request(&request);
    return request;
}

bool bfc_request_is_served(const struct bfc_request *request) {
    uint32_t served = __atomic_load_n(&request->header->request_served, __ATOMIC_ACQUIRE);
    return (int32_t)(served - request->number) >= 0;
}

uint64_t bfc_request_released(const struct bfc_request *request) {
    return __atomic_load_n(&request->header->released_bytes, __ATOMIC_ACQUIRE) -
           request->released_before;
}

void bfc_request_withdraw(const struct bfc_request *request) {
    change_bytes(&request->header->request_bytes, bfc_subtract_saturating, request->bytes);
}
