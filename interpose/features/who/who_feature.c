/* The feature `who`: which call stacks hold the memory (BFC_STACKS), and leaks. */
#include <errno.h>

#include "base/bytes.h"
#include "base/file_name.h"
#include "interpose/config/process.h"
#include "interpose/features/common/message.h"
#include "interpose/features/who/frees.h"
#include "interpose/features/who/samples.h"
#include "interpose/features/who/stacks/readable.h"
#include "interpose/table/feature.h"

/* Writes the file of call stacks (layout/who.h) if another process has asked for it. That process
 * has raised `who_asked` in the segment, and the library answers by storing the same value in
 * `who_written`. */
static void write_if_asked(struct bfc_segment_header *published) {
    static uint32_t blocks_written;
    uint32_t asked = bfc_load_acquire(&published->who_asked);
    uint32_t blocks = bfc_load_acquire(&published->blocks_asked);
    if (asked == published->who_written)
        return;
    bfc_who_write(blocks != blocks_written);
    blocks_written = blocks;
    bfc_store_release(&published->who_written, asked);
}

/* Stores the call stack of a free for the report on leaks and invalid frees (BFC_SUMMARY=leaks). A
 * failed free counts even if no pool has the address: after a first free of the block, its region
 * may have gone back to the driver. */
static void note_free(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                      bool may_wait) {
    const struct bfc_process *process = bfc_process_if_made();
    (void)may_wait;
    if (!process || process->options.summary != BFC_SUMMARY_LEAKS)
        return;
    if (result == CUDA_SUCCESS && arena)
        bfc_who_freed(pointer);
    else if (result == CUDA_ERROR_INVALID_VALUE)
        bfc_who_refused_free(pointer);
}

/* Adds to the message the libraries that hold most memory, over all devices. */
static void name_holders(struct bfc_message *message) {
    enum { SHOWN = 3 };
    struct bfc_who_library largest[SHOWN];
    size_t count = bfc_who_libraries(largest, SHOWN);
    for (size_t i = 0; i < count; i++) {
        const char *name = bfc_file_name(largest[i].path);
        bfc_message_add(message, "%s%s %s", i ? ", " : "  held by      ",
                        *name ? name : program_invocation_short_name,
                        BFC_BYTES((uint64_t)largest[i].bytes));
    }
    bool exact = bfc_process()->options.stacks == BFC_STACKS_ALL;
    if (count)
        bfc_message_add(message, " (%sbfcstat who has the call stacks)\n",
                        exact ? "" : "estimates; ");
}

static void note_sandbox(const struct bfc_driver *driver) {
    (void)driver;
    bfc_readable_begin_process();
}

static const struct bfc_feature who = {
    .name = "who",
    .driver_found = note_sandbox,
    .reader_asked = write_if_asked,
    .at_exit = bfc_leaks_at_exit,
    .sample_due = bfc_who_look,
    .freed = note_free,
    .explain_holders = name_holders,
};
BFC_REGISTER_FEATURE(who);
