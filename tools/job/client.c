/* Requests by a segment's name, under the guard. */
#include "tools/job/client.h"

#include <time.h>

#include "segment/request.h"
#include "tools/job/guard.h"

struct asking {
    bool refresh;
    uint64_t bytes; /* to trim */
    unsigned timeout_ms;
    uint64_t released;
    enum bfc_ask_result result;
};

/* Polls once a millisecond: the job does not wake its clients. */
static bool wait_until_served(const struct bfc_request *request, unsigned timeout_ms) {
    for (unsigned waited = 0;; waited++) {
        if (bfc_request_is_served(request))
            return true;
        if (waited >= timeout_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static enum bfc_read_result ask(const struct bfc_segment_look *look, char *base, void *context) {
    struct asking *asking = context;
    struct bfc_segment_header *header = (struct bfc_segment_header *)(void *)base;
    bool has_helper = bfc_segment_has_helper(header);
    (void)look;
    struct bfc_request request =
        asking->refresh ? bfc_request_refresh(header) : bfc_request_trim(header, asking->bytes);
    bool served = has_helper && wait_until_served(&request, asking->timeout_ms);
    asking->result = served ? BFC_ASK_DONE : BFC_ASK_UNANSWERED;
    asking->released = bfc_request_released(&request);
    return BFC_READ_OK;
}

static enum bfc_ask_result ask_by_name(int directory, const struct bfc_segment_name *name,
                                       struct asking *asking, char *reason, size_t size) {
    const struct bfc_segment_look look = {.name = name, .reason = reason, .reason_size = size};
    enum bfc_read_result result = bfc_segment_visit_guarded(&look, directory, true, ask, asking);
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
