/*
 * The exported functions of the runtime's short way: when they answer themselves, and how they
 * forward a call to the runtime.
 */
#include "interpose/entry/runtime.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/api/memory.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/config/routes.h"
#include "interpose/host/program_caller.h"

/* The values of cudaError_t that are used here. */
enum { SUCCESS = 0, INITIALIZATION_ERROR = 3 };

unsigned long bfc_loads = 1;

/* For each version, the runtime that every caller means. It stays loaded, since its callers are
 * linked to it, and only a call of dlopen can add another one. So an entry is valid as long as its
 * `found_at` equals bfc_loads. Each field is atomic. */
static struct {
    /* the value of bfc_loads when the runtime was found; 0: there is none, or callers mean
     * different ones */
    unsigned long found_at;
    bool ready; /* whether calls of this runtime may be answered here */
    void *calls[BFC_RUNTIME_CALL_COUNT];
} runtimes[BFC_RUNTIME_VERSIONS];

/* Both are atomic and never reset. exiting: the process is about to end, so the runtime itself must
 * answer every call. watched: a profiler may want to see the runtime's calls. */
static bool exiting, watched;

/* For the calling thread and each version: the context in which a call of the runtime succeeded. */
static __thread struct {
    /* the id of the context's arena; 0: there is none */
    unsigned long long context[BFC_RUNTIME_VERSIONS];
    unsigned left; /* how many calls remain until the next look at the loaded objects */
} thread INITIAL_EXEC;

/* ---- what keeps us from answering for the runtime ---- */

/* Whether a profiler is injected. The driver reads this variable when it is initialised, and later
 * changes have no effect; so the answer is remembered. */
static bool is_injected(void) {
    static int known; /* atomic: 0: the variable was not read yet; 1: it is not set; 2: it is set */
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

/* is_wanted() is asked again after `ready` is published, because the process may have begun to
 * exit, or a profiler may have been attached, in between. */
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

/* Logs once that a profiler may be watching. Before the first allocation there are no options yet,
 * so each look at the loaded objects calls this again. */
static void log_watched(void) {
    static bool logged; /* atomic: whether the message was written */
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

/* Publishes what a look at the loaded objects found; when it began, bfc_loads was `loads`. */
static void note_found(enum bfc_runtime_version version, const struct bfc_runtimes *found,
                       unsigned long loads) {
    bool sole = bfc_runtimes_sole(found, version);
    for (int call = 0; sole && call < BFC_RUNTIME_CALL_COUNT; call++)
        bfc_store_relaxed(&runtimes[version].calls[call], found->of[version].calls[call]);
    set_ready(version, sole);
    /* The options are read at the first allocation. Before it, the next call looks at the loaded
     * objects again. */
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

/* ---- going on to the runtime ---- */

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

/* Returns the runtime's function; NULL only if the caller's runtime has been unloaded. */
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

/* Lets no call be answered here once the process exits. A runtime registers its own handlers when
 * it is initialised, before this call, and exit runs handlers in reverse order: so ours runs
 * first. */
static void stop_at_exit(enum bfc_runtime_version version) {
    static bool asked[BFC_RUNTIME_VERSIONS];
    if (!bfc_exchange_relaxed(&asked[version], true))
        __cxa_atexit(forbid_at_exit, NULL, NULL);
}

/* To be called after a call of the runtime has succeeded: notes that the runtime works in the
 * context that is current now. */
static NOINLINE void learn_version(enum bfc_runtime_version version) {
    const struct bfc_driver *driver = bfc_driver_found;
    if (!driver || bfc_arena_last_has_id(thread.context[version]))
        return;
    thread.context[version] = bfc_arena_last_id(driver);
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

/* Passes a failed free on to the runtime. Its call of the driver comes to our hook, which answers
 * with `result`, so that the runtime handles and remembers the error as always. */
static NOINLINE int fail_free(enum bfc_runtime_version version, void *pointer, CUresult result,
                              const void *caller) {
    bfc_free_answered((CUdeviceptr)pointer, result);
    int code = forward_free(version, pointer, caller);
    bfc_free_answered(0, CUDA_SUCCESS);
    return code;
}

/* ---- the calls ---- */

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

/* A cudaSetDevice that fails may leave the runtime with another device than that of the driver's
 * current context, so no call is answered here until the runtime has succeeded again. */
static int set_device(enum bfc_runtime_version version, int device, const void *caller) {
    int (*real)(int);
    *(void **)&real = find_real(version, BFC_CALL_cudaSetDevice, caller);
    int result = real ? real(device) : INITIALIZATION_ERROR;
    if (result != SUCCESS)
        thread.context[version] = 0;
    return result;
}

/* Defines an entry: a local function, which is also exported by the runtime's name with the
 * runtime's own version, hidden (symbols.map). */
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
