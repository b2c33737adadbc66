#include "planner/image/image.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "planner/common/number.h"
#include "planner/common/sort.h"
#include "planner/common/watch.h"

struct image {
    const struct plan_content *content;
    struct bfc_plan_header header;
    unsigned char *bytes;
    struct bfc_plan_arena *arenas;
    struct bfc_plan_event *events;
    struct bfc_plan_anchor *anchors;
};

uint64_t plan_table_end(uint64_t at, uint64_t bytes) {
    return (at + bytes + BFC_PLAN_TABLE_ALIGN - 1) & ~(uint64_t)(BFC_PLAN_TABLE_ALIGN - 1);
}

void plan_seal(unsigned char *bytes, struct bfc_plan_header *header) {
    memcpy(bytes, header, sizeof *header);
    header->checksum = bfc_plan_checksum(bytes, header->file_bytes);
    memcpy(bytes, header, sizeof *header);
}

/* Returns the class that the plan's file gives the row, by its lifetime. BFC_PLAN_CROSSING means
 * that the row is freed after the end of the prefix or of the repetition that allocates it. */
static enum bfc_plan_class class_of(const struct lifetimes *lifetimes, uint32_t row,
                                    uint64_t last_death, uint64_t period_birth) {
    const struct lifetime *r = &lifetimes->rows[row];
    if (r->unplanned > 0)
        return BFC_PLAN_UNPLANNED;
    if (r->wraps_until > 0)
        return BFC_PLAN_CROSSING;
    if (r->death == last_death && (row < lifetimes->prefix || lifetimes->period == 0))
        return BFC_PLAN_LIFELONG;
    if (row < lifetimes->prefix && r->death > period_birth)
        return BFC_PLAN_CROSSING;
    return BFC_PLAN_PERIOD;
}

/*
 * Returns the indexes of the rows that are allocations, ordered by birth; rows of equal birth stay
 * in the order in which they come. NULL: the host has no memory.
 */
static struct keyed *order_events(const struct lifetimes *lifetimes) {
    struct keyed *order = malloc(((size_t)lifetimes->visible + 1) * sizeof *order);
    for (uint32_t i = 0; order && i < lifetimes->visible; i++)
        order[i] = (struct keyed){lifetimes->rows[i].birth, i};
    if (order && !sort_keyed(order, lifetimes->visible)) {
        free(order);
        return NULL;
    }
    watch_add(lifetimes->visible);
    return order;
}

static uint64_t round_size(uint64_t size, uint64_t align) {
    uint64_t result = size;
    plan_round_up(size, align, &result);
    return result;
}

static bool fill_events(struct image *image) {
    const struct plan_content *content = image->content;
    const struct lifetimes *lifetimes = content->lifetimes;
    struct keyed *order = order_events(lifetimes);
    uint64_t last_death = 0, period_birth = UINT64_MAX;
    const bool good = order;
    for (uint32_t i = 0; good && i < lifetimes->count; i++)
        last_death = bfc_max(last_death, lifetimes->rows[i].death);
    if (lifetimes->prefix < lifetimes->visible)
        period_birth = lifetimes->rows[lifetimes->prefix].birth;
    for (uint32_t i = 0; good && i < lifetimes->visible; i++) {
        const uint32_t row = order[i].index;
        const struct lifetime *r = &lifetimes->rows[row];
        image->events[i] = (struct bfc_plan_event){
            .offset = content->offsets[row],
            .size = round_size(r->unplanned > 0 ? r->unplanned : r->size, content->align),
            .birth = r->birth,
            .death = lifetimes_end(lifetimes, r),
            .row = row,
            .thread = r->thread,
            .arena = r->space,
            .class_of = (uint8_t)class_of(lifetimes, row, last_death, period_birth)};
        image->arenas[r->space].events++;
    }
    watch_add(lifetimes->visible);
    free(order);
    return good;
}

/* Writes the anchors, which are the allocations that differ from all others in device, size or
 * thread. They are found by sorting all allocations by a hash of these three and comparing
 * neighbours. False: the host has no memory. */
static bool find_anchors(struct image *image, const uint32_t *devices) {
    const uint32_t n = image->header.events;
    struct keyed *tokens = malloc(((size_t)n + 1) * sizeof *tokens);
    if (!tokens)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct bfc_plan_event *e = &image->events[i];
        tokens[i] = (struct keyed){bfc_plan_token(devices[e->arena], e->size, e->thread), i};
    }
    const bool good = sort_keyed(tokens, n);
    watch_add(n);
    image->header.anchors = 0;
    for (uint32_t i = 0; good && i < n; i++) {
        const bool alone = (i == 0 || tokens[i - 1].key != tokens[i].key) &&
                           (i + 1 == n || tokens[i + 1].key != tokens[i].key);
        if (alone)
            image->anchors[image->header.anchors++] =
                (struct bfc_plan_anchor){tokens[i].key, tokens[i].index, 0};
    }
    free(tokens);
    return good;
}

static void lay_out(struct bfc_plan_header *header, const struct plan_content *content) {
    const struct lifetimes *lifetimes = content->lifetimes;
    *header = (struct bfc_plan_header){
        .magic = BFC_PLAN_MAGIC,
        .version = BFC_PLAN_VERSION,
        .byte_order = BFC_PLAN_BYTE_ORDER,
        .source_hash = lifetimes->hash,
        .program_hash = lifetimes->program_hash,
        .align = content->align,
        .gap = content->gap,
        .arenas = lifetimes->spaces.count > 0 ? lifetimes->spaces.count : 1,
        .events = lifetimes->visible,
        .prefix = lifetimes->prefix,
        .period = lifetimes->period,
        .period_birth = lifetimes->period_birth,
        .period_ticks = lifetimes->period_ticks,
        .flags = (lifetimes->from_trace ? BFC_PLAN_FROM_TRACE : 0) |
                 (lifetimes->jitter ? BFC_PLAN_JITTER : 0)};
    for (uint32_t a = 0; a < header->arenas; a++) {
        header->bound += content->bounds[a];
        header->peak += content->peaks[a];
    }
    header->arenas_at = plan_table_end(0, sizeof *header);
    header->events_at =
        plan_table_end(header->arenas_at, header->arenas * sizeof(struct bfc_plan_arena));
    header->anchors_at =
        plan_table_end(header->events_at, header->events * sizeof(struct bfc_plan_event));
}

static bool fill_image(struct image *image, struct plan_error *error) {
    const struct plan_content *content = image->content;
    struct bfc_plan_header *header = &image->header;
    lay_out(header, content);
    const uint64_t most =
        plan_table_end(header->anchors_at, header->events * sizeof(struct bfc_plan_anchor));
    uint32_t *devices = calloc(header->arenas, sizeof *devices);
    image->bytes = calloc(1, most);
    if (!image->bytes || !devices) {
        free(devices);
        return plan_fail_memory(error);
    }
    image->arenas = (void *)(image->bytes + header->arenas_at);
    image->events = (void *)(image->bytes + header->events_at);
    image->anchors = (void *)(image->bytes + header->anchors_at);
    for (uint32_t a = 0; a < header->arenas; a++) {
        devices[a] = !content->lifetimes->devices ? 0 : content->lifetimes->devices[a];
        image->arenas[a] = (struct bfc_plan_arena){
            .bound = content->bounds[a], .peak = content->peaks[a], .device = devices[a]};
    }
    const bool good = fill_events(image) && find_anchors(image, devices);
    free(devices);
    header->file_bytes =
        plan_table_end(header->anchors_at, header->anchors * sizeof(struct bfc_plan_anchor));
    plan_seal(image->bytes, header);
    watch_add(header->events);
    return good || plan_fail_memory(error);
}

bool plan_image(const struct plan_content *content, struct file_text *text,
                struct plan_error *error) {
    struct image image = {.content = content};
    if (!fill_image(&image, error)) {
        free(image.bytes);
        return false;
    }
    *text = (struct file_text){(char *)image.bytes, image.header.file_bytes};
    return true;
}

bool plan_looks_like(const struct file_text *text) {
    return text->size >= sizeof BFC_PLAN_MAGIC &&
           memcmp(text->bytes, BFC_PLAN_MAGIC, sizeof BFC_PLAN_MAGIC) == 0;
}

static bool table_inside(const struct plan_file *plan, uint64_t at, uint64_t count, uint64_t each) {
    const uint64_t size = plan->header.file_bytes;
    return at % BFC_PLAN_TABLE_ALIGN == 0 && at >= sizeof plan->header && at <= size &&
           count <= (size - at) / each;
}

static bool check_header(struct plan_file *plan, struct plan_error *error) {
    const struct bfc_plan_header *header = &plan->header;
    if (!plan_looks_like(&plan->text) || plan->text.size < sizeof *header)
        return plan_fail(error, "%s: header: not a plan of bfcplan", plan->path);
    memcpy(&plan->header, plan->text.bytes, sizeof *header);
    if (header->byte_order != BFC_PLAN_BYTE_ORDER)
        return plan_fail(error, "%s: header: written on a machine of another byte order",
                         plan->path);
    if (header->version != BFC_PLAN_VERSION)
        return plan_fail(error, "%s: header: version %u, only version %d is accepted: plan it anew",
                         plan->path, header->version, BFC_PLAN_VERSION);
    if (header->file_bytes != plan->text.size)
        return plan_fail(error, "%s: header: %" PRIu64 " bytes expected, but the file has %zu",
                         plan->path, header->file_bytes, plan->text.size);
    if (header->checksum != bfc_plan_checksum(plan->text.bytes, plan->text.size))
        return plan_fail(error, "%s: header: the checksum is wrong: the file is damaged",
                         plan->path);
    if (!table_inside(plan, header->arenas_at, header->arenas, sizeof(struct bfc_plan_arena)) ||
        !table_inside(plan, header->events_at, header->events, sizeof(struct bfc_plan_event)) ||
        !table_inside(plan, header->anchors_at, header->anchors, sizeof(struct bfc_plan_anchor)))
        return plan_fail(error, "%s: header: a table lies outside the file", plan->path);
    if (header->align == 0 || header->align > PLAN_MOST_BYTES || header->arenas == 0 ||
        (uint64_t)header->prefix + header->period != header->events)
        return plan_fail(error, "%s: header: its numbers contradict each other", plan->path);
    return true;
}

static const char *fault_of(const struct plan_file *plan, const struct bfc_plan_event *event) {
    const struct bfc_plan_header *header = &plan->header;
    if (event->arena >= header->arenas)
        return "its arena does not exist";
    if (event->class_of >= BFC_PLAN_CLASSES)
        return "its class does not exist";
    if (event->row >= header->events)
        return "its row does not exist";
    if (event->birth >= event->death)
        return "its death is not after its birth";
    if (event->class_of == BFC_PLAN_UNPLANNED)
        return NULL;
    if (event->offset % header->align != 0 || event->size % header->align != 0)
        return "its offset or size is not a multiple of the alignment";
    const uint64_t peak = plan->arenas[event->arena].peak;
    if (event->size > 0 && (event->size > peak || event->offset > peak - event->size))
        return "it ends above its arena's peak";
    return NULL;
}

static bool check_tables(const struct plan_file *plan, struct plan_error *error) {
    const struct bfc_plan_header *header = &plan->header;
    for (uint32_t i = 0; i < header->events; i++) {
        const char *fault = fault_of(plan, &plan->events[i]);
        if (fault)
            return plan_fail(error, "%s: event %u: %s", plan->path, i, fault);
    }
    for (uint32_t i = 0; i < header->anchors; i++)
        if (plan->anchors[i].event >= header->events)
            return plan_fail(error, "%s: anchor %u: its event does not exist", plan->path, i);
    return true;
}

bool plan_parse(struct plan_file *plan, struct file_text *text, const char *path,
                struct plan_error *error) {
    struct plan_file result = {.path = path, .text = *text};
    *text = (struct file_text){NULL, 0};
    bool good = check_header(&result, error);
    if (good) {
        const char *bytes = result.text.bytes;
        result.arenas = (const void *)(bytes + result.header.arenas_at);
        result.events = (const void *)(bytes + result.header.events_at);
        result.anchors = (const void *)(bytes + result.header.anchors_at);
        good = check_tables(&result, error);
    }
    if (!good) {
        plan_free(&result);
        return false;
    }
    *plan = result;
    return true;
}

void plan_free(struct plan_file *plan) {
    file_free(&plan->text);
    *plan = (struct plan_file){0};
}
