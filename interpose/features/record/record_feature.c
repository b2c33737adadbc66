/* The feature `record`: traces of what the program allocates and frees (BFC_RECORD). */
#include "interpose/features/record/record.h"
#include "interpose/table/feature.h"

static const struct bfc_feature record = {
    .name = "record",
    .allocated = bfc_trace_allocation,
    .allocation_failed = bfc_trace_out_of_memory,
    .freeing = bfc_trace_free,
    .stack_taken = bfc_trace_stack,
};
BFC_REGISTER_FEATURE(record);
