#include "segment/request.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/numbers.h"

uint32_t bfc_segment_wake(uint32_t *word) {
    uint32_t value = bfc_add_fetch_acq_rel(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return value;
}

bool bfc_segment_has_helper(const struct bfc_segment_header *header) {
    uint32_t owner = bfc_load_acquire(&header->owner);
    return (owner & FUTEX_TID_MASK) && !(owner & FUTEX_OWNER_DIED);
}

bool bfc_segment_may_answer(const struct bfc_segment_header *header) {
    return bfc_load_acquire(&header->owner) == 0 || bfc_segment_has_helper(header);
}

/* Adds `bytes` to a word of the segment, the sum of what all clients request, or subtracts them.
 * `change` does either, and must saturate, so that the sum never wraps. */
static void change_bytes(uint64_t *word, uint64_t (*change)(uint64_t, uint64_t), uint64_t bytes) {
    uint64_t before = bfc_load_relaxed(word), after;
    do
        after = change(before, bytes);
    while (!bfc_compare_exchange_acq_rel(word, &before, after));
}

static struct bfc_request begin_request(struct bfc_segment_header *header, uint64_t bytes) {
    return (struct bfc_request){.header = header,
                                .bytes = bytes,
                                .released_before = bfc_load_acquire(&header->released_bytes)};
}

struct bfc_request bfc_request_trim(struct bfc_segment_header *header, uint64_t bytes) {
    struct bfc_request request = begin_request(header, bytes);
    change_bytes(&header->request_bytes, bfc_add_saturating, bytes);
    request.number = bfc_segment_wake(&header->request);
    return request;
}

struct bfc_request bfc_request_refresh(struct bfc_segment_header *header) {
    struct bfc_request request = begin_request(header, 0);
    bfc_fetch_add_acq_rel(&header->refresh_asked, 1);
    request.number = bfc_segment_wake(&header->request);
    return request;
}

static struct bfc_request request_answer(struct bfc_segment_header *header, uint32_t *asked) {
    struct bfc_request request = begin_request(header, 0);
    bfc_fetch_add_relaxed(asked, 1);
    request.number = bfc_segment_wake(&header->request);
    return request;
}

struct bfc_request bfc_request_who(struct bfc_segment_header *header) {
    return request_answer(header, &header->who_asked);
}

struct bfc_request bfc_request_who_and_blocks(struct bfc_segment_header *header) {
    bfc_fetch_add_relaxed(&header->blocks_asked, 1);
    return request_answer(header, &header->who_asked);
}

struct bfc_request bfc_request_plan(struct bfc_segment_header *header) {
    return request_answer(header, &header->plan_asked);
}

struct bfc_request bfc_request_sleep(struct bfc_segment_header *header, uint32_t *word) {
    return request_answer(header, word);
}

bool bfc_sleep_is_answered(const struct bfc_segment_sleep *sleep) {
    uint32_t asked = bfc_load_acquire(&sleep->asked) + bfc_load_acquire(&sleep->begged) +
                     bfc_load_acquire(&sleep->wake_asked);
    return (int32_t)(bfc_load_acquire(&sleep->answered) - asked) >= 0;
}

bool bfc_request_is_served(const struct bfc_request *request) {
    uint32_t served = bfc_load_acquire(&request->header->request_served);
    return (int32_t)(served - request->number) >= 0;
}

uint64_t bfc_request_released(const struct bfc_request *request) {
    return bfc_load_acquire(&request->header->released_bytes) - request->released_before;
}

void bfc_request_withdraw(const struct bfc_request *request) {
    change_bytes(&request->header->request_bytes, bfc_subtract_saturating, request->bytes);
}
