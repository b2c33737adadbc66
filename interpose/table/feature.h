/*
 * The table of features: all that the core knows of what stands in interpose/features/.
 *
 * The core pools device memory safely: modes of free, growth, limits. Whatever else the library can
 * do is a feature: a folder of its own, with one struct bfc_feature in which it names the functions
 * that the core is to call. BFC_REGISTER_FEATURE puts that into a section of the library, where the
 * core finds whichever features were built (-Dfeatures, in the order of interpose/meson.build). So
 * no file of the core includes or calls a feature, and one that is left out costs nothing.
 *
 * Functions that are NULL are passed over. They are called by the program's threads, without a
 * lock, and are thread-safe; none is called in a forked child.
 */
#ifndef BFC_INTERPOSE_FEATURE_H
#define BFC_INTERPOSE_FEATURE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "layout/segment.h"

struct bfc_arena;
struct bfc_call;
struct bfc_driver;
struct bfc_message;
struct bfc_pointer;
struct bfc_process;
struct bfc_stack_tables;
struct bfc_upstream;

/* What is tried, in the order of the rungs, for an allocation that its pool could not serve. */
struct bfc_resort {
    enum bfc_rung rung;
    enum bfc_event_kind event; /* when it has saved an allocation */
    /* Whether it is worth a try. NULL: for whatever is not larger than the device. */
    bool (*may_serve)(const struct bfc_call *call);
    /* Asks the pool again (bfc_call_try_again), or serves the allocation in its own way and sets
     * the call's status to BFC_OK; true: it is served. */
    bool (*serve)(struct bfc_call *call);
};
enum { BFC_RESORTS_OF_FEATURE = 4, BFC_FEATURE_SLOTS = 8 };

struct bfc_feature {
    const char *name; /* as -Dfeatures names it */

    /* Which entry of an arena's `features` holds the feature's state: `*slot` is set before any
     * function here is called. NULL: the feature keeps no state in arenas. */
    unsigned *slot;

    /* ---- the process ---- */

    /* The process has published its segment. Once. */
    void (*segment_opened)(const struct bfc_process *process, struct bfc_segment_header *published);
    /* A reader has put a request into the segment. The helper thread makes this call. */
    void (*reader_asked)(struct bfc_segment_header *published);
    /* The process exits. */
    void (*at_exit)(const struct bfc_process *process);

    /* ---- arenas ---- */

    /* An arena is being made: its device and limits are known, its pool is made next, over
     * `upstream`, in which the feature may put calls for pages. */
    void (*arena_making)(const struct bfc_driver *driver, struct bfc_arena *arena,
                         struct bfc_upstream *upstream);
    /* It is about to be published, which another thread may do first. Until arena_published, by
     * the same thread: with what was published, and whether that is `made`. */
    void (*arena_publishing)(struct bfc_arena *made);
    void (*arena_published)(struct bfc_arena *published, bool is_ours);
    /* Its context has ended, and nobody enters it any more. */
    void (*arena_ended)(const struct bfc_driver *driver, struct bfc_arena *arena);
    /* Nobody refers to it any more: the feature's state goes. */
    void (*arena_freed)(struct bfc_arena *arena);

    /* ---- contexts ---- */

    /* A context is about to end, and nobody of ours enters it; then either the driver has refused,
     * or it has ended. One that no hook saw end has only ended. */
    void (*context_ending)(const struct bfc_driver *driver, CUcontext context);
    void (*context_kept)(const struct bfc_driver *driver, CUcontext context);
    void (*context_ended)(const struct bfc_driver *driver, CUcontext context);
    /* A context of `device` has got access to the arena's, or has lost it. On an error, the
     * driver's, the peer gets none. */
    CUresult (*peers_changed)(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdevice device);

    /* ---- allocations and frees ---- */

    /* The countdown of bfc_allocations_until_sample has come to its end, and is below 0: whoever
     * wants to see another allocation sets it. */
    void (*sample_due)(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes,
                       unsigned bin);
    /*
     * After each allocation, whoever served it, and after each that failed for want of memory.
     * These two, `freeing` and `freed` are called only where a call takes the long way: while the
     * process is not usual (interpose/config/process.h), as when it records, and for blocks that
     * need care.
     */
    void (*allocated)(CUdeviceptr pointer, size_t bytes);
    void (*allocation_failed)(size_t bytes);
    /* A sample's call stack was taken: the block's address, the stack's place in the tables that
     * `tables` gives, how many blocks the sample stands for. */
    void (*stack_taken)(CUdeviceptr pointer, uint32_t site, double weight,
                        struct bfc_stack_tables (*tables)(void));
    /* Before each free, since the address may be another's right after it. */
    void (*freeing)(CUdeviceptr pointer, CUstream stream);
    /* After each free: `arena` is that of the block, NULL if it is none of ours; `may_wait`: the
     * program's call may wait for work, as cuMemFree does. */
    void (*freed)(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result, bool may_wait);

    struct bfc_resort resorts[BFC_RESORTS_OF_FEATURE]; /* where serve is NULL there is none */
    /* All was in vain, and the program is told that there is no memory. */
    void (*out_of_memory)(const struct bfc_call *call);
    /* Add to the message about that what the feature knows: a line on who holds the memory, and a
     * piece of advice on what would have helped (false: it has none). */
    void (*explain_holders)(struct bfc_message *message);
    bool (*advise)(struct bfc_message *message, const struct bfc_call *call);

    /* ---- pointers ---- */

    /* Fills in what lies at an address that is, or was, another process's memory; false: it is not.
     * The other two read and set what the program asked for such a block by
     * CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
    bool (*find_import)(CUdeviceptr pointer, struct bfc_pointer *found);
    bool (*import_has_sync_memops)(uint64_t id);
    void (*set_import_sync_memops)(uint64_t id, bool on);
    /* What cuIpcGetMemHandle does for a pooled block, and cuIpcOpenMemHandle and
     * cuIpcCloseMemHandle for any handle; of one feature at most. */
    CUresult (*export_block)(const struct bfc_driver *driver, CUipcMemHandle *handle,
                             const struct bfc_pointer *block);
    /* The block for which it gave this handle is no more. */
    void (*export_ended)(const CUipcMemHandle *handle);
    CUresult (*open_import)(const struct bfc_driver *driver, CUdeviceptr *pointer,
                            CUipcMemHandle handle, unsigned flags,
                            CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned));
    CUresult (*close_import)(const struct bfc_driver *driver, CUdeviceptr pointer);
};

/* ---- registering ---- */

#define BFC_REGISTER_FEATURE(feature)                                                              \
    static const struct bfc_feature *const feature##_registered                                    \
        __attribute__((section("bfc_features"), used)) = &(feature)

/* What the linker has collected: from the first to before the end. */
extern const struct bfc_feature *const __start_bfc_features[] WEAK_HIDDEN;
extern const struct bfc_feature *const __stop_bfc_features[] WEAK_HIDDEN;

#define BFC_FOR_EACH_FEATURE(feature)                                                              \
    for (const struct bfc_feature *const *feature = __start_bfc_features;                          \
         feature < __stop_bfc_features; feature++)

/* Calls a function of each feature that has it. */
#define BFC_TELL_FEATURES(function, ...)                                                           \
    do {                                                                                           \
        BFC_FOR_EACH_FEATURE(feature)                                                              \
        if ((*feature)->function)                                                                  \
            (*feature)->function(__VA_ARGS__);                                                     \
    } while (0)

/* Gives each feature its slot. Once, before any other call here. */
void bfc_features_begin(void);

/* What features there are, for people: their names, with a space in front of each. */
void bfc_features_names(char *text, size_t size);

/* ---- samples ---- */

/*
 * How many more allocations of the calling thread, by bfc_size_bin, are served until the features
 * are told of one (sample_due). So an allocation that nobody wants to see costs a subtraction.
 */
extern __thread int16_t bfc_allocations_until_sample[BFC_SIZE_BINS] INITIAL_EXEC HIDDEN;
#define BFC_NO_SAMPLE_SOON INT16_MAX

void bfc_features_sample(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes,
                         unsigned bin);

/* Counts an allocation that an arena served, before the program has its address. `bin` is the bin
 * of the allocation's size (bfc_size_bin). */
static ALWAYS_INLINE void bfc_features_count_allocation(const struct bfc_arena *arena,
                                                        CUdeviceptr pointer, size_t bytes,
                                                        unsigned bin) {
    if (UNLIKELY(--bfc_allocations_until_sample[bin] < 0))
        bfc_features_sample(arena, pointer, bytes, bin);
}

#endif
