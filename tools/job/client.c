#include "tools/job/client.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "segment/request.h"
#include "tools/job/guard.h"

/* How long to sleep between two looks at whether the job has answered. The job does not wake those
 * who ask. */
#define NAP_NS 1000000

struct asking {
    bool refresh;
    uint64_t bytes; /* bytes that a trim requests; not used by a refresh */
    /* until when to wait for the answer; NULL: do not wait */
    struct bfc_bounded_wait *wait;
    uint64_t released;
    enum bfc_ask_result result;
};

static bool wait_until_served(const struct bfc_request *request, struct bfc_bounded_wait *wait) {
    while (!bfc_request_is_served(request))
        if (!wait || !bfc_bounded_wait_nap(wait))
            return false;
    return true;
}

struct bfc_bounded_wait bfc_ask_wait(unsigned milliseconds) {
    uint64_t now = bfc_now_ns();
    return bfc_bounded_wait_until(now + milliseconds * UINT64_C(1000000), now, NAP_NS);
}

/* How many milliseconds to wait until a new job has its helper thread, which answers requests. The
 * thread starts within microseconds unless the machine is busy. */
#define HELPER_MS 1000

bool bfc_ask_wait_for_helper(const struct bfc_segment_header *header) {
    struct bfc_bounded_wait wait = bfc_ask_wait(HELPER_MS);
    while (bfc_load_acquire(&header->owner) == 0 && bfc_bounded_wait_nap(&wait))
        ;
    return bfc_segment_has_helper(header);
}

static enum bfc_read_result ask_helper(const struct bfc_segment_look *look, char *base,
                                       void *context) {
    struct asking *asking = context;
    struct bfc_segment_header *header = (struct bfc_segment_header *)(void *)base;
    bool has_helper =
        asking->refresh ? bfc_segment_has_helper(header) : bfc_ask_wait_for_helper(header);
    (void)look;
    struct bfc_request request =
        asking->refresh ? bfc_request_refresh(header) : bfc_request_trim(header, asking->bytes);
    bool served = has_helper && wait_until_served(&request, asking->wait);
    asking->result = served ? BFC_ASK_DONE : BFC_ASK_UNANSWERED;
    asking->released = bfc_request_released(&request);
    return BFC_READ_OK;
}

static enum bfc_ask_result ask_by_name(int directory, const struct bfc_segment_name *name,
                                       struct asking *asking, char *reason, size_t size) {
    const struct bfc_segment_look look = {.name = name, .reason = reason, .reason_size = size};
    enum bfc_read_result result =
        bfc_segment_visit_guarded(&look, directory, true, ask_helper, asking);
    return result == BFC_READ_OK ? asking->result : BFC_ASK_REFUSED;
}

enum bfc_ask_result bfc_segment_refresh(int directory, const struct bfc_segment_name *name,
                                        struct bfc_bounded_wait *wait, char *reason, size_t size) {
    struct asking asking = {.refresh = true, .wait = wait};
    return ask_by_name(directory, name, &asking, reason, size);
}

enum bfc_ask_result bfc_segment_trim(int directory, const struct bfc_segment_name *name,
                                     uint64_t bytes, unsigned timeout_ms, uint64_t *released,
                                     char *reason, size_t size) {
    struct bfc_bounded_wait wait = bfc_ask_wait(timeout_ms);
    struct asking asking = {.bytes = bytes, .wait = &wait};
    enum bfc_ask_result result = ask_by_name(directory, name, &asking, reason, size);
    *released = asking.released;
    return result;
}

struct asking_sleep {
    bool wake;
    struct bfc_bounded_wait wait;
    struct bfc_sleep_answer *answer;
    enum bfc_ask_result result;
};

/* How many milliseconds to wait while the job neither falls asleep nor wakes: it may be stopped. */
#define STOPPED_MS 5000

static bool is_changing(const struct bfc_segment_sleep *sleep) {
    uint64_t state = bfc_load_acquire(&sleep->state);
    return state == BFC_SLEEP_FALLING || state == BFC_SLEEP_WAKING;
}

static enum bfc_read_result ask_sleep(const struct bfc_segment_look *look, char *base,
                                      void *context) {
    struct asking_sleep *asking = context;
    struct bfc_segment_header *header = (struct bfc_segment_header *)(void *)base;
    struct bfc_segment_sleep *sleep = &header->sleep;
    (void)look;
    bool served = bfc_ask_wait_for_helper(header);
    if (served)
        bfc_request_sleep(header, asking->wake ? &sleep->wake_asked : &sleep->asked);
    struct bfc_bounded_wait still = bfc_ask_wait(STOPPED_MS);
    while (served && !bfc_sleep_is_answered(sleep))
        served = bfc_segment_has_helper(header) &&
                 bfc_bounded_wait_nap(is_changing(sleep) ? &asking->wait : &still);
    asking->result = served ? BFC_ASK_DONE : BFC_ASK_UNANSWERED;
    asking->answer->sleep = *sleep;
    asking->answer->asleep = 0;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        asking->answer->asleep += bfc_segment_sections_of(header)[i].pages.asleep;
    return BFC_READ_OK;
}

enum bfc_ask_result bfc_segment_ask_sleep(int directory, const struct bfc_segment_name *name,
                                          bool wake, unsigned timeout_ms,
                                          struct bfc_sleep_answer *answer, char *reason,
                                          size_t size) {
    const struct bfc_segment_look look = {.name = name, .reason = reason, .reason_size = size};
    struct asking_sleep asking = {.wake = wake, .wait = bfc_ask_wait(timeout_ms), .answer = answer};
    enum bfc_read_result result =
        bfc_segment_visit_guarded(&look, directory, true, ask_sleep, &asking);
    return result == BFC_READ_OK ? asking.result : BFC_ASK_REFUSED;
}
