/* The feature `record`: traces of what the program allocates and frees (BFC_RECORD). */
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/features/record/trace_writer.h"
#include "interpose/table/feature.h"

static bool is_on(void) {
    const struct bfc_process *process = bfc_process_if_made();
    return process && process->options.record[0];
}

static bool is_spilled(CUdeviceptr pointer) {
    const struct bfc_arena *arena = bfc_arena_of(pointer);
    return arena && bfc_arena_is_host(arena);
}

static void record_allocation(CUdeviceptr pointer, size_t bytes) {
    if (is_on())
        bfc_trace_allocation(pointer, bytes, is_spilled(pointer));
}

static void record_failure(size_t bytes) {
    if (is_on())
        bfc_trace_out_of_memory(bytes);
}

static void record_free(CUdeviceptr pointer, CUstream stream) {
    if (is_on())
        bfc_trace_free(pointer, stream);
}

static const struct bfc_feature record = {
    .name = "record",
    .allocated = record_allocation,
    .allocation_failed = record_failure,
    .freeing = record_free,
    .stack_taken = bfc_trace_stack,
};
BFC_REGISTER_FEATURE(record);
