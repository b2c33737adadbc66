/*
 * The table of features: all that the core knows of what stands in interpose/features/.
 *
 * The core pools device memory safely: modes of free, growth, limits. Whatever else the library can
 * do is a feature: a folder of its own, with one struct bfc_feature in which it names the functions
 * that the core is to call. BFC_REGISTER_FEATURE puts that struct into a section of the library,
 * where the core finds those that were built (-Dfeatures, in interpose/meson.build's order). So no
 * file of the core includes or calls a feature, and one that is left out costs nothing.
 *
 * Functions that are NULL are passed over. The others are called by the program's threads, without
 * a lock, and are thread-safe; none is called in a forked child.
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
    enum bfc_event_kind
        event; /* the event that records that this resort has served an allocation */
    /* Whether the resort may help. NULL: if the allocation is not larger than the device. */
    bool (*may_serve)(const struct bfc_call *call);
    /* Asks the pool again (bfc_call_try_again), or serves the allocation in its own way and sets
     * the call's status to BFC_OK. Returns whether the allocation is served. */
    bool (*serve)(struct bfc_call *call);
};
enum { BFC_RESORTS_OF_FEATURE = 4, BFC_FEATURE_SLOTS = 8 };

struct bfc_feature {
    const char *name; /* the feature's name, as the build option -Dfeatures has it */

    /* Which entry of an arena's `features` holds the feature's state: `*slot` is set before any
     * function here is called. NULL: the feature keeps no state in arenas. */
    unsigned *slot;

    /* ---- the process ---- */

    /* The driver was found, and no hook is given out yet; two threads may make this call. */
    void (*driver_found)(const struct bfc_driver *driver);
    /* The process has published its segment, which happens once. */
    void (*segment_opened)(const struct bfc_process *process, struct bfc_segment_header *published);
    /* A reader has put a request into the segment. The helper thread makes this call. */
    void (*reader_asked)(struct bfc_segment_header *published);
    /* The process exits. */
    void (*at_exit)(const struct bfc_process *process);

    /* ---- arenas ---- */

    /* An arena is being made: its device and limits are known, and its pool, which is made next,
     * will take memory from `upstream`. The feature may put calls for pages into `upstream`. */
    void (*arena_making)(const struct bfc_driver *driver, struct bfc_arena *arena,
                         struct bfc_upstream *upstream);
    /* An arena that this thread has made is about to be published, unless another thread publishes
     * one for the same context first. This thread then calls arena_published with the arena that
     * was published; `is_ours` is true if that arena is `made`. */
    void (*arena_publishing)(struct bfc_arena *made);
    void (*arena_published)(struct bfc_arena *published, bool is_ours);
    /* The arena's context has ended, and no thread enters the arena any more. */
    void (*arena_ended)(const struct bfc_driver *driver, struct bfc_arena *arena);
    /* No thread refers to the arena any more, so the feature frees its state. */
    void (*arena_freed)(struct bfc_arena *arena);

    /* ---- contexts ---- */

    /* context_ending: a context is about to end, and the library calls the driver in it no more.
     * Later, context_kept says that the driver has refused to end it, or context_ended that it has
     * ended. If a context ends unseen by any hook, only context_ended is called. It forgets what is
     * found by the context's handle, and must neither call the driver nor wait for a thread that
     * may. contexts_forgotten is called soon after, and may do both. */
    void (*context_ending)(const struct bfc_driver *driver, CUcontext context);
    void (*context_kept)(const struct bfc_driver *driver, CUcontext context);
    void (*context_ended)(CUcontext context);
    void (*contexts_forgotten)(const struct bfc_driver *driver);
    /* A context of `device` has got access to the memory of the arena's context, or has lost it.
     * If this returns an error of the driver, that context gets no access. */
    CUresult (*peers_changed)(const struct bfc_driver *driver, struct bfc_arena *arena,
                              CUdevice device);

    /* ---- allocations and frees ---- */

    /* The countdown bfc_allocations_until_sample has fallen below 0. A feature that wants to see
     * another allocation sets it again. */
    void (*sample_due)(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes,
                       unsigned bin);
    /* After each allocation, whether a pool or the driver served it, and after each that failed
     * with out of memory. But `allocated`, `allocation_failed`, `freeing` and `freed` are called
     * for every block only while bfc_process_is_usual (interpose/config/process.h) is false, as
     * when a trace is recorded. Otherwise they are called only for blocks that the fast path leaves
     * to slower code. */
    void (*allocated)(CUdeviceptr pointer, size_t bytes);
    void (*allocation_failed)(size_t bytes);
    /* The call stack of a sampled allocation was taken. `site` is the stack's place in the tables
     * that `tables` returns, and `weight` is how many blocks the sample stands for. */
    void (*stack_taken)(CUdeviceptr pointer, uint32_t site, double weight,
                        struct bfc_stack_tables (*tables)(void));
    /* Before each free: right after a free another allocation may get the address. */
    void (*freeing)(CUdeviceptr pointer, CUstream stream);
    /* After each free: `arena` is that of the block, or NULL if no pool of ours served it;
     * `may_wait`: the program's call may wait for work, as cuMemFree does. */
    void (*freed)(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result, bool may_wait);

    /* the feature's last resorts; elements without a function `serve` are unused */
    struct bfc_resort resorts[BFC_RESORTS_OF_FEATURE];
    /* No last resort has helped, so the allocation fails with out of memory. */
    void (*out_of_memory)(const struct bfc_call *call);
    /* explain_holders and advise add to the out-of-memory message what the feature knows: a line on
     * who holds the memory, and advice on what would have helped (false: the feature has none). */
    void (*explain_holders)(struct bfc_message *message);
    bool (*advise)(struct bfc_message *message, const struct bfc_call *call);

    /* ---- pointers ---- */

    /* find_import describes the address of memory that was imported from another process; false: it
     * is not such an address. import_has_sync_memops and set_import_sync_memops read and set what
     * the program asked for an imported block by CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
    bool (*find_import)(CUdeviceptr pointer, struct bfc_pointer *found);
    bool (*import_has_sync_memops)(uint64_t id);
    void (*set_import_sync_memops)(uint64_t id, bool on);
    /* export_block does what cuIpcGetMemHandle does, for a pooled block; open_import and
     * close_import do what cuIpcOpenMemHandle and cuIpcCloseMemHandle do, for any handle, pooled
     * block or not. One feature at most has these functions, and then it has all three. */
    CUresult (*export_block)(const struct bfc_driver *driver, CUipcMemHandle *handle,
                             const struct bfc_pointer *block);
    /* The block for which export_block gave this handle was freed, or its context has ended. */
    void (*export_ended)(const CUipcMemHandle *handle);
    CUresult (*open_import)(const struct bfc_driver *driver, CUdeviceptr *pointer,
                            CUipcMemHandle handle, unsigned flags,
                            CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned));
    CUresult (*close_import)(const struct bfc_driver *driver, CUdeviceptr pointer);

    /* Answers cuMemAllocPitch in `result`; false: the driver is to serve the call. */
    bool (*allocate_pitched)(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t *pitch,
                             size_t width, size_t height, unsigned element, CUresult *result);
};

#define BFC_REGISTER_FEATURE(feature)                                                              \
    static const struct bfc_feature *const feature##_registered                                    \
        __attribute__((section("bfc_features"), used)) = &(feature)

/* The pointers that the linker has collected: the first one, and the end behind the last one. */
extern const struct bfc_feature *const __start_bfc_features[] HIDDEN;
extern const struct bfc_feature *const __stop_bfc_features[] HIDDEN;

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

/* Gives each feature its index in the array `features` of an arena. To be called before any other
 * function of a feature is. */
void bfc_features_begin(void);

/* Writes the features' names, with a space in front of each; cut off at `size` bytes. */
void bfc_features_names(char *text, size_t size);

/* For each bin of sizes (bfc_size_bin): how many more allocations of the calling thread come before
 * the next one for which sample_due is called. So an allocation that no feature samples costs only
 * a subtraction. */
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
