/*
 * The exported cudaMalloc, cudaFree and cudaSetDevice: when they answer a call themselves, and how
 * they pass a call on to the runtime.
 */
#include "interpose/entry/runtime.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/api/memory.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/config/routes.h"
#include "interpose/driver/current.h"
#include "interpose/host/program_caller.h"

/* Values of cudaError_t, since the runtime's header is not included. */
enum { SUCCESS = 0, INITIALIZATION_ERROR = 3 };

unsigned long bfc_loads = 1;

/* For each symbol version, the CUDA runtime to which every caller is bound, as no other is loaded.
 * It stays loaded, since its callers are linked to it, and only a call of dlopen can load another.
 * So an entry is valid while its `found_at` equals bfc_loads. Each field is atomic. */
static struct {
    /* the value of bfc_loads when the runtime was found; 0: it must be searched for */
    unsigned long found_at;
    bool ready; /* whether cudaMalloc and cudaFree of this runtime may be answered by the library */
    void *calls[BFC_RUNTIME_CALL_COUNT];
} runtimes[BFC_RUNTIME_VERSIONS];

/* Atomic flags that are never reset. exiting: the process has begun to exit, so every call is
 * passed to the runtime. watched: a profiler may want to see the runtime's calls. */
static bool exiting, watched;

/* For the calling thread and each version of the runtime: the id of the context that was current
 * when a call of the runtime last succeeded. 0: none has succeeded, cudaSetDevice has failed since,
 * or the thread had last used another context's arena. */
static __thread struct {
    unsigned long long context[BFC_RUNTIME_VERSIONS];
    unsigned left; /* how many calls remain until the loaded objects are searched again */
} thread INITIAL_EXEC;

/* Whether a profiler was injected by CUDA_INJECTION64_PATH. The driver reads that variable once,
 * when it is initialised, so the answer is kept. */
static bool is_injected(void) {
    static int known; /* atomic; 0: the variable is not read yet; 1: it is not set; 2: it is set */
    int was = bfc_load_relaxed(&known);
    if (!was) {
        was = 1 + (getenv("CUDA_INJECTION64_PATH") != NULL);
        bfc_store_relaxed(&known, was);
    }
    return was == 2;
}

static bool is_wanted(void) {
    const struct bfc_process *process = bfc_process_if_made();
    if (!process || !process->serves || process->options.runtime == BFC_RUNTIME_OFF ||
        bfc_load_seq_cst(&exiting))
        return false;
    return process->options.runtime == BFC_RUNTIME_ON ||
           (!bfc_load_seq_cst(&watched) && !is_injected());
}

/* Sets whether the library answers calls of the runtime. is_wanted() is asked again after `ready`
 * is stored, because the process may have begun to exit, or a profiler may have been attached, in
 * between. */
static void set_ready(enum bfc_runtime_version version, bool may) {
    bfc_store_seq_cst(&runtimes[version].ready, may && is_wanted());
    if (may && !is_wanted())
        bfc_store_seq_cst(&runtimes[version].ready, false);
}

static void forbid_entry(bool *reason) {
    bfc_store_seq_cst(reason, true);
    for (int version = 0; version < BFC_RUNTIME_VERSIONS; version++)
        set_ready((enum bfc_runtime_version)version, bfc_load_relaxed(&runtimes[version].ready));
}

/* Logs once that a profiler may be watching. Before the first allocation the log level is not
 * known, so this is called again whenever the loaded objects are searched. */
static void log_watched(void) {
    static bool logged; /* atomic */
    const struct bfc_process *process = bfc_process_if_made();
    if (process && process->serves && process->options.runtime == BFC_RUNTIME_AUTO &&
        (bfc_load_seq_cst(&watched) || is_injected()) && !bfc_exchange_relaxed(&logged, true))
        bfc_log(BFC_LOG_INFO, "a profiler may be watching: calls of the runtime are not answered "
                              "before it (BFC_RUNTIME=auto)");
}

void bfc_runtime_watched(void) {
    forbid_entry(&watched);
    log_watched();
}

/* Stores the result of a search of the loaded objects; bfc_loads was `loads` before that search. */
static void note_found(enum bfc_runtime_version version, const struct bfc_runtimes *found,
                       unsigned long loads) {
    bool sole = bfc_runtimes_sole(found, version);
    for (int call = 0; sole && call < BFC_RUNTIME_CALL_COUNT; call++)
        bfc_store_relaxed(&runtimes[version].calls[call], found->of[version].calls[call]);
    set_ready(version, sole);
    /* not kept until the first allocation reads the options, on which `ready` depends */
    bool lasts = sole && bfc_process_if_made();
    bfc_store_release(&runtimes[version].found_at, lasts ? loads : 0);
    thread.left = BFC_RUNTIME_LOOKS;
}

static inline bool is_known(enum bfc_runtime_version version) {
    return bfc_load_acquire(&runtimes[version].found_at) == bfc_load_relaxed(&bfc_loads) &&
           thread.left != 0;
}

static inline bool may_answer(enum bfc_runtime_version version) {
    if (!is_known(version) || !bfc_load_relaxed(&runtimes[version].ready))
        return false;
    thread.left--;
    return true;
}

static NOINLINE void *look_for(enum bfc_runtime_version version, enum bfc_runtime_call call,
                               const void *caller) {
    struct bfc_runtimes found;
    unsigned long loads = bfc_load_acquire(&bfc_loads);
    bfc_runtimes_find(&found);
    note_found(version, &found, loads);
    bfc_routes_note(bfc_runtime_names[call], BFC_ROUTE_RUNTIME);
    log_watched();
    return bfc_runtimes_call(&found, version, call, caller);
}

/* Returns the function of the runtime to which the caller would be bound without this library. NULL
 * only if that runtime was unloaded. */
static inline void *find_real(enum bfc_runtime_version version, enum bfc_runtime_call call,
                              const void *caller) {
    if (!is_known(version))
        return look_for(version, call, caller);
    thread.left--;
    return bfc_load_relaxed(&runtimes[version].calls[call]);
}

extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

static void forbid_at_exit(void *unused) {
    (void)unused;
    forbid_entry(&exiting);
}

/* Makes every call go to the runtime once the process exits. Exit handlers run in reverse order:
 * forbid_at_exit, registered here, runs before those that the runtime registered when it was
 * initialised. */
static void stop_at_exit(enum bfc_runtime_version version) {
    static bool asked[BFC_RUNTIME_VERSIONS];
    if (!bfc_exchange_relaxed(&asked[version], true))
        __cxa_atexit(forbid_at_exit, NULL, NULL);
}

/* To be called after a call of the runtime has succeeded: from now on the library may answer this
 * runtime's calls in the current context. */
static NOINLINE void learn_version(enum bfc_runtime_version version) {
    const struct bfc_driver *driver = bfc_driver_found;
    if (!driver || bfc_arena_last_of(thread.context[version]))
        return;
    unsigned long long id = bfc_context_id(driver, NULL);
    thread.context[version] = bfc_arena_last_of(id) ? id : 0;
    if (thread.context[version])
        stop_at_exit(version);
}

static inline int learn_from(enum bfc_runtime_version version, int result) {
    if (result == SUCCESS && bfc_load_relaxed(&runtimes[version].ready))
        learn_version(version);
    return result;
}

static NOINLINE int forward_malloc(enum bfc_runtime_version version, void **pointer, size_t bytes,
                                   const void *caller) {
    int (*real)(void **, size_t);
    *(void **)&real = find_real(version, BFC_CALL_cudaMalloc, caller);
    uint64_t before = bfc_program_caller_set((uint64_t)caller);
    int result = real ? real(pointer, bytes) : INITIALIZATION_ERROR;
    bfc_program_caller_set(before);
    return learn_from(version, result);
}

static NOINLINE int forward_free(enum bfc_runtime_version version, void *pointer,
                                 const void *caller) {
    int (*real)(void *);
    *(void **)&real = find_real(version, BFC_CALL_cudaFree, caller);
    uint64_t before = bfc_program_caller_set((uint64_t)caller);
    int result = real ? real(pointer) : INITIALIZATION_ERROR;
    bfc_program_caller_set(before);
    return learn_from(version, result);
}

/* Passes a free that failed with `result` on to the runtime. The runtime calls the driver's free,
 * whose hook answers with `result`, so that the runtime handles and remembers the error itself. */
static NOINLINE int fail_free(enum bfc_runtime_version version, void *pointer, CUresult result,
                              const void *caller) {
    bfc_free_answered((CUdeviceptr)pointer, result);
    int code = forward_free(version, pointer, caller);
    bfc_free_answered(0, CUDA_SUCCESS);
    return code;
}

static inline int allocate_memory(enum bfc_runtime_version version, void **pointer, size_t bytes,
                                  const void *caller) {
    CUdeviceptr block;
    if (may_answer(version) && pointer &&
        bfc_allocate_hit(&block, bytes, thread.context[version])) {
        *pointer = (void *)block;
        return SUCCESS;
    }
    return forward_malloc(version, pointer, bytes, caller);
}

static inline int release_memory(enum bfc_runtime_version version, void *pointer,
                                 const void *caller) {
    CUresult result;
    if (!may_answer(version) || !pointer ||
        !bfc_free_hit((CUdeviceptr)pointer, thread.context[version], &result))
        return forward_free(version, pointer, caller);
    return result == CUDA_SUCCESS ? SUCCESS : fail_free(version, pointer, result, caller);
}

/* A failed cudaSetDevice may leave the runtime with another device than that of the driver's
 * current context. So cudaMalloc and cudaFree then go to the runtime until one has succeeded. */
static int set_device(enum bfc_runtime_version version, int device, const void *caller) {
    int (*real)(int);
    *(void **)&real = find_real(version, BFC_CALL_cudaSetDevice, caller);
    int result = real ? real(device) : INITIALIZATION_ERROR;
    if (result != SUCCESS)
        thread.context[version] = 0;
    return result;
}

/* Defines a function of this file and exports it by the runtime's name, with the runtime's symbol
 * version. One @ makes that version hidden: a look-up without a version does not find it. */
#define ENTRY(number, version, name, parameters, answer)                                           \
    __attribute__((visibility("hidden"))) int runtime_##number##_##name parameters;                \
    int bfc_export_##number##_##name parameters                                                    \
        __attribute__((visibility("default"), alias("runtime_" #number "_" #name)));               \
    __asm__(".symver bfc_export_" #number "_" #name ", " #name "@" version);                       \
    int runtime_##number##_##name parameters {                                                     \
        return answer;                                                                             \
    }
#define ENTRIES(number, version)                                                                   \
    ENTRY(number, version, cudaMalloc, (void **pointer, size_t bytes),                             \
          allocate_memory(BFC_RUNTIME_##number, pointer, bytes, __builtin_return_address(0)))      \
    ENTRY(number, version, cudaFree, (void *pointer),                                              \
          release_memory(BFC_RUNTIME_##number, pointer, __builtin_return_address(0)))              \
    ENTRY(number, version, cudaSetDevice, (int device),                                            \
          set_device(BFC_RUNTIME_##number, device, __builtin_return_address(0)))
BFC_RUNTIMES(ENTRIES)

void *bfc_runtime_entry(enum bfc_runtime_version version, enum bfc_runtime_call call) {
#define ANSWER(number, name)                                                                       \
    if (version == BFC_RUNTIME_##number && call == BFC_CALL_##name)                                \
        return __extension__(void *) runtime_##number##_##name;
#define ANSWERS(number, text)                                                                      \
    ANSWER(number, cudaMalloc) ANSWER(number, cudaFree) ANSWER(number, cudaSetDevice)
    BFC_RUNTIMES(ANSWERS)
#undef ANSWERS
#undef ANSWER
    return NULL;
}
