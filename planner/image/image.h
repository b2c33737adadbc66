/*
 * The bytes of a plan (layout/plan.h): made from what was packed, and read with every number
 * checked.
 */
#ifndef BFC_PLAN_IMAGE_H
#define BFC_PLAN_IMAGE_H

#include "layout/plan.h"
#include "planner/model/lifetimes.h"

/* What a plan is made from. There is an offset for each row, and a bound and a peak for each
 * space. */
struct plan_content {
    const struct lifetimes *lifetimes;
    const uint64_t *offsets;
    const uint64_t *bounds;
    const uint64_t *peaks;
    uint64_t align;
    uint64_t gap;
};

/* How many steps plan_image counts for each row (planner/common/watch.h). */
#define IMAGE_STEPS 4u

/* Makes the bytes of a plan; free `text` with file_free. */
bool plan_image(const struct plan_content *content, struct file_text *text,
                struct plan_error *error);

/* Returns the offset at which a table of `bytes` bytes that begins at the offset `at` ends,
 * rounded up to BFC_PLAN_TABLE_ALIGN. */
uint64_t plan_table_end(uint64_t at, uint64_t bytes);

/* Copies the header to the beginning of a plan's bytes, with their checksum. */
void plan_seal(unsigned char *bytes, struct bfc_plan_header *header);

/* A plan in memory. The pointers to its tables point into its text. */
struct plan_file {
    const char *path;
    struct file_text text;
    struct bfc_plan_header header;
    const struct bfc_plan_arena *arenas;
    const struct bfc_plan_event *events;
    const struct bfc_plan_anchor *anchors;
};

bool plan_looks_like(const struct file_text *text);

/* Reads the plan in `text` and owns the text from then on, even if it fails. Free the plan with
 * plan_free. */
bool plan_parse(struct plan_file *plan, struct file_text *text, const char *path,
                struct plan_error *error);
void plan_free(struct plan_file *plan);

#endif
