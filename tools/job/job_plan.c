#include "tools/job/job_plan.h"

#include <stdlib.h>
#include <string.h>

#include "tools/job/answer.h"

#define LARGEST_FILE ((size_t)1 << 30)

static uint32_t *plan_asked(struct bfc_segment_header *header) {
    return &header->plan_asked;
}

static uint32_t *plan_written(struct bfc_segment_header *header) {
    return &header->plan_written;
}

/* Copies the plan with which `bytes` begin, and sets `*taken` to its size. False: they begin with
 * no valid plan, there are too many plans, or there is no memory. */
static bool add_plan(struct bfc_plans *plans, const char *bytes, size_t size, size_t *taken) {
    struct bfc_plan_header header;
    struct plan_error error;
    memcpy(&header, bytes, sizeof header);
    if (plans->count == BFC_SEGMENT_POOLS || header.file_bytes < sizeof header ||
        header.file_bytes > size)
        return false;
    struct file_text text = {malloc(header.file_bytes), header.file_bytes};
    if (!text.bytes)
        return false;
    memcpy(text.bytes, bytes, header.file_bytes);
    *taken = header.file_bytes;
    return plan_parse(&plans->list[plans->count], &text, "plan", &error) && ++plans->count;
}

static bool take_plans(struct bfc_plans *plans, const char *bytes, size_t size) {
    bool good = size > 0;
    for (size_t at = 0, taken = 0; at < size && good; at += taken)
        good = size - at >= sizeof(struct bfc_plan_header) &&
               add_plan(plans, bytes + at, size - at, &taken);
    return good;
}

static bool take_file(int file, void *to) {
    struct bfc_plans *plans = to;
    size_t size = 0;
    char *bytes = bfc_answer_read(file, sizeof(struct bfc_plan_header), LARGEST_FILE, &size);
    plans->list = calloc(BFC_SEGMENT_POOLS, sizeof *plans->list);
    bool good = bytes && plans->list && take_plans(plans, bytes, size);
    free(bytes);
    if (!good)
        bfc_plans_free(plans);
    return good;
}

bool bfc_plans_ask(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                   struct bfc_plans *plans, char *reason, size_t size) {
    static const struct bfc_question question = {
        .answer = BFC_PLAN_ANSWER,
        .request = bfc_request_plan,
        .asked = plan_asked,
        .written = plan_written,
        .unknown = "which gives no plan away",
        .none = "has no plan: BFC_PLAN is not set, its file was refused, or no loop was planned "
                "so far (with BFC_BACKING=pages none is while no page has to move)",
    };
    *plans = (struct bfc_plans){.list = NULL};
    return bfc_answer_fetch(directory, name, &question, timeout_ms, take_file, plans, reason, size);
}

void bfc_plans_free(struct bfc_plans *plans) {
    for (size_t i = 0; i < plans->count; i++)
        plan_free(&plans->list[i]);
    free(plans->list);
    *plans = (struct bfc_plans){.list = NULL};
}
