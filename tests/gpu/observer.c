// Compares what the hooks saw with what ran on the device. scripts/gpu-check links this file into a
// copy of the library, which is preloaded and is CUDA_INJECTION64_PATH at the same time: the driver
// then calls InitializeInjection while it is initialized.
//
// CUPTI calls back at the beginning of each driver call, in the caller's thread, so the thread's
// count says whether the call came through a hook that counts it. What ran is told by CUPTI's
// records of kernels, copies and sets, each of which has the number of the call that began it.
//
// At the process's end a line of JSON is appended to the file that OBSERVER_OUT names. Without
// CUDA_INJECTION64_PATH there is no CUPTI in the process: then the line says only why submissions
// might be unseen.
#include <cupti.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "interpose/driver/submission_calls.h"
#include "interpose/features/gate/submissions.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/counter.h"

#define EXPORTED __attribute__((visibility("default")))

enum { FUNCTIONS = 4096, STREAMS = 256, REASONS = 32, TABLES = 64, BUFFER = 1 << 20 };
enum { MOST_CALLS = 1 << 26 }; // numbers above are not looked up

static const char *problem = "CUPTI was not asked"; // why there are no records; NULL: there are

// ---- what may hide submissions ----

static struct { char what[96]; } reasons[REASONS];
static unsigned reasons_count; // atomic

// The linker leads calls of bfc_only_stream_hide here.
void __real_bfc_only_stream_hide(const char *what);
void __wrap_bfc_only_stream_hide(const char *what);

void __wrap_bfc_only_stream_hide(const char *what) {
    unsigned at = __atomic_fetch_add(&reasons_count, 1, __ATOMIC_SEQ_CST);
    if (at < REASONS)
        snprintf(reasons[at].what, sizeof reasons[at].what, "%s", what);
    __real_bfc_only_stream_hide(what);
}

// ---- the driver's calls ----

// For each call by its number: its function, and whether a hook counted it. A runtime's call has
// those of a driver call that it made, of which one that was counted comes first.
enum { COUNTED = 1, KNOWN = 2, FUNCTION_SHIFT = 2 };
static uint32_t *calls_made; // by number

struct function {
    const char *name;
    unsigned counted, uncounted; // calls
    unsigned ran, ran_unseen;    // records of calls that were counted, and of others
};
static struct function functions[FUNCTIONS]; // the driver's, by CUPTI's number
static __thread uint32_t runtime_call;       // the thread's, in which it is; 0: none

static CUptiResult (*next_record)(uint8_t *, size_t, CUpti_Activity **);

static void note_call(uint32_t number, uint32_t function, bool counted) {
    if (number && number < MOST_CALLS && !(calls_made[number] & COUNTED))
        calls_made[number] =
            (function << FUNCTION_SHIFT) | KNOWN | (uint32_t)(counted ? COUNTED : 0);
}

static void begin_driver_call(uint32_t function, const CUpti_CallbackData *data) {
    bool counted = bfc_load_relaxed(&bfc_submitter.count) % BFC_SUBMISSION;
    if (function >= FUNCTIONS)
        return;
    functions[function].name = data->functionName;
    __atomic_fetch_add(counted ? &functions[function].counted : &functions[function].uncounted, 1,
                       __ATOMIC_RELAXED);
    note_call(data->correlationId, function, counted);
    note_call(runtime_call, function, counted);
}

static void CUPTIAPI see_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId function,
                              const void *details) {
    const CUpti_CallbackData *data = details;
    (void)unused;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
        runtime_call = data->callbackSite == CUPTI_API_ENTER ? data->correlationId : 0;
    else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && data->callbackSite == CUPTI_API_ENTER)
        begin_driver_call(function, data);
}

// Whether the function has a hook which counts it, and nothing else.
static bool is_hooked(const char *name) {
    static const char *const hooked[] = {
#define NAME(name, ...) #name,
        BFC_SUBMISSION_CALLS(NAME) BFC_STREAM_CALLS(NAME) BFC_SYNCHRONOUS_CALLS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof hooked / sizeof hooked[0]; i++)
        if (strcmp(name, hooked[i]) == 0)
            return true;
    return strncmp(name, "cuLaunch", strlen("cuLaunch")) == 0 ||
           strncmp(name, "cuGraphLaunch", strlen("cuGraphLaunch")) == 0;
}

// ---- what ran ----

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards what follows
static unsigned kernels, copies, sets, others, unknown_calls;
static bool streams_used[STREAMS];

static void note_record(unsigned *count, uint32_t number, uint32_t stream) {
    ++*count;
    if (stream < STREAMS)
        streams_used[stream] = true;
    uint32_t call = number < MOST_CALLS ? calls_made[number] : 0;
    if (!(call & KNOWN)) {
        unknown_calls++;
        return;
    }
    struct function *function = &functions[call >> FUNCTION_SHIFT];
    ++*(call & COUNTED ? &function->ran : &function->ran_unseen);
}

#define NOTE(type, count)                                                                          \
    note_record(count, ((const type *)record)->correlationId, ((const type *)record)->streamId)

static void see_record(const CUpti_Activity *record) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        NOTE(CUpti_ActivityKernel4, &kernels);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        NOTE(CUpti_ActivityMemcpy3, &copies);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
        NOTE(CUpti_ActivityMemcpyPtoP, &copies);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        NOTE(CUpti_ActivityMemset2, &sets);
    else
        others++;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = aligned_alloc(8, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *records = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t used) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    while (used && next_record(buffer, used, &record) == CUPTI_SUCCESS)
        see_record(record);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

// ---- the beginning ----

// One that is in the process already, else the one that OBSERVER_CUPTI names.
static void *find_cupti(void) {
    const char *path = getenv("OBSERVER_CUPTI");
    void *found = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    return found || !path ? found : dlopen(path, RTLD_NOW);
}

static CUptiResult enable(void *cupti) {
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
    static CUpti_SubscriberHandle subscriber;
    __typeof__(cuptiSubscribe) *subscribe = dlsym(cupti, "cuptiSubscribe");
    __typeof__(cuptiEnableDomain) *enable_domain = dlsym(cupti, "cuptiEnableDomain");
    __typeof__(cuptiActivityRegisterCallbacks) *give =
        dlsym(cupti, "cuptiActivityRegisterCallbacks");
    __typeof__(cuptiActivityEnable) *enable_kind = dlsym(cupti, "cuptiActivityEnable");
    next_record = dlsym(cupti, "cuptiActivityGetNextRecord");
    if (!subscribe || !enable_domain || !give || !enable_kind || !next_record)
        return CUPTI_ERROR_NOT_SUPPORTED;
    CUptiResult result = subscribe(&subscriber, see_call, NULL);
    if (result == CUPTI_SUCCESS)
        result = give(give_buffer, take_buffer);
    if (result == CUPTI_SUCCESS)
        result = enable_domain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
    if (result == CUPTI_SUCCESS)
        result = enable_domain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    for (size_t i = 0; result == CUPTI_SUCCESS && i < sizeof kinds / sizeof kinds[0]; i++)
        result = enable_kind(kinds[i]);
    return result;
}

// ---- the end ----

static FILE *out;
static const char *comma;

static void print_entry(const char *name, unsigned count) {
    if (count)
        fprintf(out, "%s\"%s\": %u", comma, name, count);
    comma = count ? ", " : comma;
}

static void begin_list(const char *name) {
    fprintf(out, ", \"%s\": {", name);
    comma = "";
}

// `hooked`: only functions that have such a hook.
static void print_functions(const char *name, size_t count, bool hooked) {
    begin_list(name);
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (functions[i].name && (!hooked || is_hooked(functions[i].name)))
            print_entry(functions[i].name,
                        *(const unsigned *)((const char *)&functions[i] + count));
    fputs("}", out);
}

static void print_records(void) {
    unsigned streams = 0;
    for (size_t i = 0; i < STREAMS; i++)
        streams += streams_used[i];
    fprintf(out, ", \"kernels\": %u, \"copies\": %u, \"sets\": %u, \"others\": %u, \"streams\": %u",
            kernels, copies, sets, others, streams);
    fprintf(out, ", \"of unknown calls\": %u", unknown_calls);
    print_functions("ran, seen", offsetof(struct function, ran), false);
    print_functions("ran, unseen", offsetof(struct function, ran_unseen), false);
    print_functions("calls, seen", offsetof(struct function, counted), true);
    print_functions("past hooks", offsetof(struct function, uncounted), true);
}

// Why the gate is off; nothing where it was still on when the process began to end.
static void print_gate(void) {
    const char *hidden = bfc_submissions_hidden_by();
    uint64_t sum = 0;
    bfc_submissions_count(&sum);
    fprintf(out, "{\"program\": \"%s\", \"counted\": %s, \"off\": \"%s\", \"checks\": %llu",
            program_invocation_short_name, bfc_counter ? "true" : "false",
            hidden && strcmp(hidden, "the process exits") != 0 ? hidden : "",
            (unsigned long long)bfc_segment_counters()->gate.checks);
    fputs(", \"may hide\": [", out);
    for (unsigned i = 0; i < reasons_count && i < REASONS; i++)
        fprintf(out, "%s\"%s\"", i ? ", " : "", reasons[i].what);
    fputs("]", out);
}

static void report(void) {
    const char *path = getenv("OBSERVER_OUT");
    out = path ? fopen(path, "a") : NULL;
    if (!out)
        return;
    print_gate();
    if (problem)
        fprintf(out, ", \"problem\": \"%s\"", problem);
    else
        print_records();
    fputs("}\n", out);
    fclose(out);
}

static CUptiResult (*flush_all)(uint32_t);
static pid_t observed;

static void end_observing(void) {
    if (getpid() != observed)
        return;
    if (flush_all && !problem)
        flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&lock);
    report();
    pthread_mutex_unlock(&lock);
}

// As the driver calls it, once, within cuInit.
EXPORTED int InitializeInjection(void) {
    static char why[64];
    void *cupti = find_cupti();
    observed = getpid();
    calls_made = mmap(NULL, MOST_CALLS * sizeof *calls_made, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    problem = "no CUPTI";
    if (cupti && calls_made != MAP_FAILED) {
        CUptiResult result = enable(cupti);
        flush_all = dlsym(cupti, "cuptiActivityFlushAll");
        snprintf(why, sizeof why, "CUPTI answers %d", (int)result);
        problem = result == CUPTI_SUCCESS ? NULL : why;
    }
    atexit(end_observing);
    return 1;
}

// Where nothing was injected. The driver was not used in a process in which nothing is counted.
static __attribute__((destructor)) void end_unobserved(void) {
    if (!observed && bfc_counter)
        report();
}
