/*
 * Makes the bytes of a plan's file (layout/plan.h) from a finished plan, and reads such bytes,
 * checking every number in them.
 */
#ifndef BFC_PLAN_IMAGE_H
#define BFC_PLAN_IMAGE_H

#include "layout/plan.h"
#include "planner/model/lifetimes.h"

/* A finished plan, of which the bytes are to be made: an offset for each row, and a lower bound and
 * a peak for each space, all in bytes. */
struct plan_content {
    const struct lifetimes *lifetimes;
    const uint64_t *offsets;
    const uint64_t *bounds;
    const uint64_t *peaks;
    uint64_t align;
    uint64_t gap;
};

/* How many steps of progress plan_image counts for each row (planner/common/watch.h). */
#define IMAGE_STEPS 4u

/* Makes the bytes of a plan's file. The caller frees `text` by file_free. */
bool plan_image(const struct plan_content *content, struct file_text *text,
                struct plan_error *error);

/* Returns where the next table of the file may begin if a table of `bytes` bytes begins at offset
 * `at`: the table's end, rounded up to a multiple of BFC_PLAN_TABLE_ALIGN. */
uint64_t plan_table_end(uint64_t at, uint64_t bytes);

/* Computes the checksum of a plan's file, and writes the header, with the checksum in it, to the
 * beginning of the bytes. */
void plan_seal(unsigned char *bytes, struct bfc_plan_header *header);

/* A plan that was read into memory. Its three tables point into `text`. */
struct plan_file {
    const char *path;
    struct file_text text;
    struct bfc_plan_header header;
    const struct bfc_plan_arena *arenas;
    const struct bfc_plan_event *events;
    const struct bfc_plan_anchor *anchors;
};

bool plan_looks_like(const struct file_text *text);

/* Reads a plan from `text` and checks it. The bytes of `text` then belong to the plan, or are freed
 * on failure. The caller frees the plan by plan_free. */
bool plan_parse(struct plan_file *plan, struct file_text *text, const char *path,
                struct plan_error *error);
void plan_free(struct plan_file *plan);

#endif
