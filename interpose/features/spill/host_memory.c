/* Takes and gives back host memory, and keeps a list of host memory whose context has ended. */
#include "interpose/features/spill/host_memory.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"
#include "interpose/arena/region_map.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"

bool bfc_host_memory_can_be_had(const struct bfc_driver *driver, CUdevice device) {
    int maps = 0;
    return driver->cuMemHostAlloc && driver->cuMemFreeHost &&
           driver->cuMemHostGetDevicePointer_v2 && driver->cuDeviceGetAttribute &&
           driver->cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, device) ==
               CUDA_SUCCESS &&
           maps;
}

/* Whether the device reaches the memory by its host address: only then the address is the same in
 * all contexts. */
static bool is_unified(const struct bfc_driver *driver, void *memory, CUdeviceptr *pointer) {
    return driver->cuMemHostGetDevicePointer_v2(pointer, memory, 0) == CUDA_SUCCESS &&
           *pointer == (CUdeviceptr)memory;
}

CUresult bfc_host_memory_take(const struct bfc_driver *driver, const struct bfc_arena *arena,
                              uint64_t bytes, bool is_first, CUdeviceptr *pointer,
                              const char **why) {
    (void)arena, (void)is_first;
    void *memory = NULL;
    CUresult result = driver->cuMemHostAlloc(&memory, bytes,
                                             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    *why = "the driver did not pin host memory";
    if (bfc_driver_is_fatal(result))
        return result;
    if (result != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (is_unified(driver, memory, pointer))
        return CUDA_SUCCESS;
    *why = "the device does not reach host memory by its own address";
    driver->cuMemFreeHost(memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult bfc_host_memory_give(const struct bfc_driver *driver, CUdeviceptr pointer) {
    return driver->cuMemFreeHost((void *)pointer);
}

struct bfc_host_left {
    struct bfc_host_left *next;
    uint64_t start, bytes;
    uint64_t id; /* the driver's buffer id (CU_POINTER_ATTRIBUTE_BUFFER_ID); 0: not known */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bfc_host_left *left; /* memory whose contexts have ended; changed under `lock`, and
                                      read atomically without it */

static CUresult ask_id(const struct bfc_driver *driver, uint64_t start, uint64_t *id) {
    unsigned long long buffer = 0;
    CUresult result = driver->cuPointerGetAttribute
                          ? driver->cuPointerGetAttribute(&buffer, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                          (CUdeviceptr)start)
                          : CUDA_ERROR_NOT_SUPPORTED;
    *id = result == CUDA_SUCCESS ? buffer : 0;
    return result;
}

/* Returns a list of the regions of an arena of host memory, with the driver's buffer ids. */
static struct bfc_host_left *note_regions(const struct bfc_driver *driver,
                                          struct bfc_arena *arena) {
    struct bfc_host_left *noted = NULL, *one;
    uint64_t start, bytes;
    bool pushed;
    if (bfc_arena_make_current(driver, arena, &pushed) != CUDA_SUCCESS)
        return NULL;
    for (uint64_t from = 0; bfc_region_next(from, arena, &start, &bytes); from = start + bytes) {
        if (!(one = malloc(sizeof *one)))
            break;
        *one = (struct bfc_host_left){.next = noted, .start = start, .bytes = bytes};
        ask_id(driver, start, &one->id);
        noted = one;
    }
    bfc_current_leave(driver, pushed);
    return noted;
}

static void append_memory(struct bfc_host_left *list) {
    struct bfc_host_left **end = &list;
    while (*end)
        end = &(*end)->next;
    pthread_mutex_lock(&lock);
    *end = left;
    bfc_store_release(&left, list);
    pthread_mutex_unlock(&lock);
}

/* Adds the regions that were noted before the end of the arena's context to the list of memory
 * whose contexts have ended. Their addresses no longer belong to the arena, since the driver may
 * give them out again. */
static void add_noted(struct bfc_arena *arena, struct bfc_host_left *noted) {
    for (struct bfc_host_left *one = noted; one; one = one->next) {
        bfc_region_remove(one->start, arena);
        bfc_device_leave(arena, one->bytes);
    }
    append_memory(noted);
}

static void forget_noted(struct bfc_host_left *noted) {
    while (noted) {
        struct bfc_host_left *next = noted->next;
        free(noted);
        noted = next;
    }
}

/* Index in an arena's `features` of the list of regions that was noted before the end of the
 * arena's context, until bfc_host_left_add or bfc_host_left_forget takes it. */
unsigned bfc_host_left_slot;

static struct bfc_host_left *take_noted(struct bfc_arena *arena) {
    struct bfc_host_left *noted = arena->features[bfc_load_relaxed(&bfc_host_left_slot)];
    arena->features[bfc_load_relaxed(&bfc_host_left_slot)] = NULL;
    return noted;
}

void bfc_host_left_note(const struct bfc_driver *driver, CUcontext context) {
    struct bfc_arena *arena = bfc_arena_host_of_context(context, 0);
    if (!arena)
        return;
    forget_noted(take_noted(arena));
    arena->features[bfc_load_relaxed(&bfc_host_left_slot)] = note_regions(driver, arena);
    bfc_arena_drop(arena);
}

void bfc_host_left_add(CUcontext context) {
    struct bfc_arena *arena = bfc_arena_host_of_context(context, 0);
    if (arena)
        add_noted(arena, take_noted(arena));
    bfc_arena_drop(arena);
}

void bfc_host_left_forget(const struct bfc_driver *driver, CUcontext context) {
    struct bfc_arena *arena = bfc_arena_host_of_context(context, 0);
    (void)driver;
    if (arena)
        forget_noted(take_noted(arena));
    bfc_arena_drop(arena);
}

void bfc_host_left_arena_freed(struct bfc_arena *arena) {
    forget_noted(take_noted(arena));
}

/* Frees the memory if it outlived its context; returns whether it is free now. It went with its
 * context if the driver has another allocation, or none, at its address. */
static bool has_gone(const struct bfc_driver *driver, const struct bfc_host_left *one) {
    uint64_t id;
    CUresult result = ask_id(driver, one->start, &id);
    if (result != CUDA_SUCCESS || id != one->id)
        return result == CUDA_ERROR_INVALID_VALUE || (result == CUDA_SUCCESS && one->id);
    return bfc_host_memory_give(driver, (CUdeviceptr)one->start) == CUDA_SUCCESS;
}

static struct bfc_host_left *take_all(void) {
    pthread_mutex_lock(&lock);
    struct bfc_host_left *all = left;
    bfc_store_release(&left, NULL);
    pthread_mutex_unlock(&lock);
    return all;
}

void bfc_host_left_collect(const struct bfc_driver *driver) {
    if (!bfc_host_left_is_there() || bfc_captures_exist())
        return;
    struct bfc_device *host = bfc_device_find(BFC_DEVICE_HOST);
    struct bfc_host_left *all = take_all(), *kept = NULL, *next;
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    for (struct bfc_host_left *one = all; one; one = next) {
        next = one->next;
        if (has_gone(driver, one)) {
            bfc_fetch_sub_relaxed(&host->reserved, one->bytes);
            free(one);
        } else {
            one->next = kept;
            kept = one;
        }
    }
    bfc_capture_restore(driver, mode);
    append_memory(kept);
}

bool bfc_host_left_is_there(void) {
    return bfc_load_acquire(&left);
}
