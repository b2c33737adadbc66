// Asks a real driver what the safety of reuse rests on and no documentation says, or says only in
// part (docs/internals/safety.md): one experiment for each question, with a plain answer.
//
// Nothing is decided by how long a call took: a kernel of 200 ms runs, and what counts is whether
// it was over when something else was. Each question is asked in a process of its own, since the
// wrong answer may be an error that stays, or a wait without end.
//
// usage: unknowns KERNELS_PTX QUESTION | unknowns --list
#include <pthread.h>
#include <unistd.h>

#include "tests/gpu/measuring.h"

enum { LONG_US = 200000, KIB = 1 << 10, MIB = 1 << 20 };
enum answer { NO, YES, CANNOT_ASK, EITHER };

static const char *kernels_path;

static bool over(CUstream stream) {
    return cuStreamQuery(stream) == CUDA_SUCCESS;
}

static CUdeviceptr new_block(size_t bytes) {
    CUdeviceptr block;
    MUST(cuMemAlloc(&block, bytes));
    return block;
}

static CUevent new_event(void) {
    CUevent event;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

static CUstream busy_stream(void) {
    CUstream stream = new_stream();
    start_spin_of(stream, LONG_US);
    return stream;
}

static pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0)
        exit(1);
    return thread;
}

// ---- what a free of the driver's waits for ----

static enum answer free_waits_for(CUstream stream, size_t bytes) {
    CUdeviceptr unused = new_block(bytes);
    start_spin_of(stream, LONG_US);
    MUST(cuMemFree(unused));
    return over(stream);
}

static enum answer free_waits(void) {
    return free_waits_for(new_stream(), 2 * MIB);
}

static enum answer small_free_waits(void) {
    CUdeviceptr neighbour = new_block(4 * KIB);
    enum answer answer = free_waits_for(new_stream(), 4 * KIB);
    MUST(cuMemFree(neighbour));
    return answer;
}

static enum answer free_waits_for_legacy(void) {
    return free_waits_for(CU_STREAM_LEGACY, 2 * MIB);
}

static enum answer free_waits_for_per_thread(void) {
    return free_waits_for(CU_STREAM_PER_THREAD, 2 * MIB);
}

// A stream that waits for a value has nothing running on the device.
static void *write_value_later(void *word) {
    usleep(LONG_US);
    *(volatile unsigned *)word = 1;
    return NULL;
}

static enum answer free_waits_for_waiting_stream(void) {
    unsigned *word;
    CUdeviceptr there, unused = new_block(2 * MIB);
    CUstream stream = new_stream();
    MUST(cuMemHostAlloc((void **)&word, sizeof *word, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&there, word, 0));
    *word = 0;
    if (cuStreamWaitValue32(stream, there, 1, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS)
        return CANNOT_ASK;
    pthread_t thread = start(write_value_later, word);
    MUST(cuMemFree(unused));
    enum answer answer = over(stream);
    pthread_join(thread, NULL);
    return answer;
}

// Another context on the device, current from now on, with the kernel loaded.
static void enter_other_context(const char *kernels) {
    CUcontext other;
#if CUDA_VERSION >= 13000
    MUST(cuCtxCreate(&other, NULL, 0, 0));
#else
    MUST(cuCtxCreate(&other, 0, 0));
#endif
    MUST(cuModuleLoad(&module, kernels));
    MUST(cuModuleGetFunction(&spin, module, "spin"));
    CUstream stream = new_stream();
    start_spin(stream);
    MUST(cuStreamSynchronize(stream));
}

static enum answer free_waits_for_other_context(void) {
    CUdeviceptr unused = new_block(2 * MIB);
    enter_other_context(kernels_path);
    CUstream stream = busy_stream();
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemFree(unused));
    return over(stream);
}

static enum answer host_free_waits(void) {
    void *unused;
    CUstream stream = new_stream();
    MUST(cuMemHostAlloc(&unused, 4 * KIB, 0));
    start_spin_of(stream, LONG_US);
    MUST(cuMemFreeHost(unused));
    return over(stream);
}

static enum answer allocation_waits(void) {
    CUstream stream = busy_stream();
    new_block(64 * MIB);
    return over(stream);
}

// ---- what a thread does while another one frees ----

struct other_free {
    CUdeviceptr block;
    bool begins, ended; // atomic
};

static void *free_in_thread(void *argument) {
    struct other_free *other = argument;
    MUST(cuCtxSetCurrent(context));
    __atomic_store_n(&other->begins, true, __ATOMIC_RELEASE);
    MUST(cuMemFree(other->block));
    __atomic_store_n(&other->ended, true, __ATOMIC_RELEASE);
    return NULL;
}

// Whether `call` returns before a free in another thread, which waits for a kernel.
static enum answer returns_during_free(void (*call)(void)) {
    struct other_free other = {.block = new_block(2 * MIB)};
    CUstream stream = busy_stream();
    pthread_t thread = start(free_in_thread, &other);
    while (!__atomic_load_n(&other.begins, __ATOMIC_ACQUIRE))
        usleep(100);
    usleep(LONG_US / 10); // into the driver's free
    bool waits = !__atomic_load_n(&other.ended, __ATOMIC_ACQUIRE) && !over(stream);
    call();
    bool ended = __atomic_load_n(&other.ended, __ATOMIC_ACQUIRE) || over(stream);
    pthread_join(thread, NULL);
    return waits ? !ended : CANNOT_ASK;
}

static CUstream free_stream;
static CUevent free_event;

static void launch(void) {
    start_spin_of(free_stream, 1);
}

static enum answer launch_during_free(void) {
    free_stream = new_stream();
    return returns_during_free(launch);
}

static void record(void) {
    MUST(record_context(context, free_event));
}

static enum answer record_during_free(void) {
    if (!record_context)
        return CANNOT_ASK;
    free_event = new_event();
    return returns_during_free(record);
}

static void allocate(void) {
    new_block(64 * MIB);
}

static enum answer allocation_during_free(void) {
    return returns_during_free(allocate);
}

// ---- what a fence covers ----

static enum answer fence_pending(void) {
    CUevent event = new_event();
    if (!record_context)
        return CANNOT_ASK;
    MUST(record_context(context, event));
    return cuEventQuery(event) == CUDA_ERROR_NOT_READY;
}

static enum answer fence_covers_stream(void) {
    busy_stream();
    return fence_pending();
}

static enum answer fence_covers_legacy(void) {
    start_spin_of(CU_STREAM_LEGACY, LONG_US);
    return fence_pending();
}

static void *spin_per_thread(void *unused) {
    MUST(cuCtxSetCurrent(context));
    start_spin_of(CU_STREAM_PER_THREAD, LONG_US);
    return unused;
}

// The stream's thread has ended.
static enum answer fence_covers_per_thread(void) {
    pthread_join(start(spin_per_thread, NULL), NULL);
    return fence_pending();
}

static enum answer fence_covers_destroyed(void) {
    MUST(cuStreamDestroy(busy_stream()));
    return fence_pending();
}

static void CUDA_CB sleep_on_host(void *unused) {
    (void)unused;
    usleep(LONG_US);
}

static enum answer fence_covers_host_function(void) {
    MUST(cuLaunchHostFunc(new_stream(), sleep_on_host, NULL));
    return fence_pending();
}

static enum answer fence_covers_green(void) {
#if CUDA_VERSION >= 12050
    CUdevResource all, part, rest;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUstream stream;
    unsigned groups = 1;
    if (cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
        cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 2) != CUDA_SUCCESS)
        return CANNOT_ASK;
    MUST(cuDevResourceGenerateDesc(&description, &part, 1));
    MUST(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    start_spin_of(stream, LONG_US);
    return fence_pending();
#else
    return CANNOT_ASK;
#endif
}

static enum answer unrecorded_is_complete(void) {
    return cuEventQuery(new_event()) == CUDA_SUCCESS;
}

// ---- what a wait by context orders ----

// Whether work in `stream`, or in one made after the wait, runs behind a kernel that was running.
static enum answer runs_behind(CUstream stream, bool make) {
    if (!record_context || !wait_context)
        return CANNOT_ASK;
    CUstream busy = busy_stream();
    CUevent event = new_event();
    CUdeviceptr word = new_block(4 * KIB);
    MUST(record_context(context, event));
    MUST(wait_context(context, event));
    if (make)
        stream = new_stream();
    MUST(cuMemsetD8Async(word, 1, 1, stream));
    MUST(cuStreamSynchronize(stream));
    return over(busy);
}

static enum answer wait_orders_stream(void) {
    return runs_behind(new_stream(), false);
}

static enum answer wait_orders_new_stream(void) {
    return runs_behind(NULL, true);
}

static enum answer wait_orders_per_thread(void) {
    return runs_behind(CU_STREAM_PER_THREAD, false);
}

static enum answer wait_returns_at_once(void) {
    if (!record_context || !wait_context)
        return CANNOT_ASK;
    CUstream busy = busy_stream();
    CUevent event = new_event();
    MUST(record_context(context, event));
    MUST(wait_context(context, event));
    return !over(busy);
}

// ---- captures ----

static CUstream capturing_stream(CUstreamCaptureMode mode) {
    CUstream stream = new_stream();
    MUST(cuStreamBeginCapture(stream, mode));
    return stream;
}

static bool capture_is_whole(CUstream stream) {
    CUgraph graph = NULL;
    return cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph;
}

static enum answer record_fails_in_capture(void) {
    if (!record_context)
        return CANNOT_ASK;
    CUevent event = new_event();
    capturing_stream(CU_STREAM_CAPTURE_MODE_RELAXED);
    return record_context(context, event) != CUDA_SUCCESS;
}

static enum answer stream_record_is_harmless(void) {
    CUevent event = new_event();
    CUstream other = new_stream();
    CUstream stream = capturing_stream(CU_STREAM_CAPTURE_MODE_GLOBAL);
    return cuEventRecord(event, other) == CUDA_SUCCESS && capture_is_whole(stream);
}

static bool relaxed_free(CUdeviceptr block) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    return cuMemFree(block) == CUDA_SUCCESS;
}

static enum answer relaxed_free_is_harmless(void) {
    CUdeviceptr unused = new_block(2 * MIB);
    CUstream stream = capturing_stream(CU_STREAM_CAPTURE_MODE_GLOBAL);
    return relaxed_free(unused) && capture_is_whole(stream);
}

static enum answer relaxed_free_waits(void) {
    CUdeviceptr unused = new_block(2 * MIB);
    CUstream busy = busy_stream();
    capturing_stream(CU_STREAM_CAPTURE_MODE_GLOBAL);
    return relaxed_free(unused) ? over(busy) : CANNOT_ASK;
}

// What a thread waits by while another one begins a capture, and how that went.
struct waiter {
    CUresult (*wait)(CUdeviceptr unused, CUevent event);
    CUdeviceptr unused; // memory
    CUevent event;      // recorded before
    CUresult result;
    bool is_over; // atomic
};

static CUresult wait_for_context(CUdeviceptr unused, CUevent event) {
    (void)unused, (void)event;
    return cuCtxSynchronize();
}

static CUresult wait_for_event(CUdeviceptr unused, CUevent event) {
    (void)unused;
    return cuEventSynchronize(event);
}

static CUresult wait_by_free(CUdeviceptr unused, CUevent event) {
    (void)event;
    return cuMemFree(unused);
}

static void *run_waiter(void *argument) {
    struct waiter *waiter = argument;
    MUST(cuCtxSetCurrent(context));
    waiter->result = waiter->wait(waiter->unused, waiter->event);
    __atomic_store_n(&waiter->is_over, true, __ATOMIC_SEQ_CST);
    return NULL;
}

// No call but the waiter's is made while the capture is under way: a query would end it.
static enum answer wait_with_capture(CUresult (*wait)(CUdeviceptr, CUevent)) {
    struct waiter waiter = {.wait = wait, .unused = new_block(2 * MIB), .event = new_event()};
    CUstream busy = busy_stream(), stream = new_stream();
    MUST(cuEventRecord(waiter.event, busy));
    pthread_t thread = start(run_waiter, &waiter);
    usleep(LONG_US / 10); // into the driver's wait
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    bool asked = !__atomic_load_n(&waiter.is_over, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    bool whole = capture_is_whole(stream);
    return asked ? waiter.result == CUDA_SUCCESS && whole : CANNOT_ASK;
}

// On a busy machine the capture may begin before the wait, which then fails; so once is enough.
static enum answer survives_capture(CUresult (*wait)(CUdeviceptr, CUevent)) {
    enum answer answer = CANNOT_ASK;
    for (int i = 0; i < 3 && answer != YES; i++)
        answer = wait_with_capture(wait);
    return answer;
}

static enum answer context_wait_survives_capture(void) {
    return survives_capture(wait_for_context);
}

static enum answer event_wait_survives_capture(void) {
    return survives_capture(wait_for_event);
}

static enum answer free_survives_capture(void) {
    return survives_capture(wait_by_free);
}

// ---- names, and the end ----

static enum answer stream_ids_are_new(void) {
    unsigned long long last = 0, id;
    for (int i = 0; i < 1000; i++) {
        CUstream stream = new_stream();
        MUST(cuStreamGetId(stream, &id));
        MUST(cuStreamDestroy(stream));
        if (id <= last && i > 0)
            return NO;
        last = id;
    }
    return YES;
}

// ---- pages ----

// Of memory for two pages, the second page alone.
static enum answer maps_from_an_offset(void) {
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    size_t page;
    CUdeviceptr start;
    CUmemGenericAllocationHandle handle;
    if (cuMemGetAllocationGranularity(&page, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
        CUDA_SUCCESS)
        return CANNOT_ASK;
    MUST(cuMemAddressReserve(&start, page, 0, 0, 0));
    MUST(cuMemCreate(&handle, 2 * page, &what, 0));
    return cuMemMap(start, page, page, handle, 0) == CUDA_SUCCESS;
}

static const struct question *at_exit;
static void tell(const struct question *question, enum answer answer);

static void ask_at_exit(void) {
    size_t free_bytes, total;
    tell(at_exit, cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS);
}

// The handler, registered after the first context was made, answers.
static enum answer driver_outlives_us(void) {
    atexit(ask_at_exit);
    start_spin(new_stream());
    exit(0);
}

// ---- the questions ----

#define BARRIER "no: the wait during captures is none, and sync may skip waits that native skips"
#define LAZY "no: lazy and ordered are unsafe for such work"
#define ORDERED "no: ordered is unsafe"

static const struct question {
    const char *name, *asks;
    enum answer (*ask)(void);
    enum answer expected;
    const char *decides;
} questions[] = {
    {"free", "cuMemFree of 2 MiB that nothing used waits for the context's streams", free_waits,
     YES, BARRIER},
    {"small free", "cuMemFree of 4 KiB that nothing used waits for the context's streams",
     small_free_waits, EITHER, "yes: the wait during captures may take 4 KiB instead of 2 MiB"},
    {"free, legacy", "cuMemFree waits for the legacy stream", free_waits_for_legacy, YES, BARRIER},
    {"free, per thread", "cuMemFree waits for a per-thread stream", free_waits_for_per_thread, YES,
     BARRIER},
    {"free, waiting", "cuMemFree waits for a stream that waits for a value",
     free_waits_for_waiting_stream, YES, BARRIER},
    {"free, context", "cuMemFree waits for another context of the device",
     free_waits_for_other_context, NO, "yes: limit 3 (peers that never finish) holds natively too"},
    {"host free", "cuMemFreeHost waits for the context's streams", host_free_waits, YES,
     "no: sync has no barrier left in a capture on a full device"},
    {"allocation", "cuMemAlloc of 64 MiB waits for a kernel", allocation_waits, NO,
     "yes: each growth waits, so growth should be larger"},
    {"launch beside", "a launch returns while another thread's cuMemFree waits", launch_during_free,
     YES, "no: giving memory back from the helper thread stalls the program"},
    {"allocation beside", "cuMemAlloc returns while another thread's cuMemFree waits",
     allocation_during_free, EITHER, "no: a pool's growth waits for other threads' frees"},
    {"fence beside", "cuCtxRecordEvent returns while another thread's cuMemFree waits",
     record_during_free, YES, "no: lazy waits where memory is given back"},
    {"fence, stream", "a fence covers a stream's kernel", fence_covers_stream, YES, LAZY},
    {"fence, legacy", "a fence covers the legacy stream", fence_covers_legacy, YES, LAZY},
    {"fence, per thread", "a fence covers an ended thread's per-thread stream",
     fence_covers_per_thread, YES, LAZY},
    {"fence, destroyed", "a fence covers a destroyed stream", fence_covers_destroyed, YES, LAZY},
    {"fence, host", "a fence covers a host function", fence_covers_host_function, YES, LAZY},
    {"fence, green", "a fence of the primary context covers a green context's stream",
     fence_covers_green, YES, LAZY},
    {"event", "an event that was never recorded says that it is complete", unrecorded_is_complete,
     YES, "no: the rule that entries being recorded are not queried is not needed"},
    {"wait, stream", "after cuCtxWaitEvent a stream's work runs behind the event",
     wait_orders_stream, YES, ORDERED},
    {"wait, new stream", "after cuCtxWaitEvent the work of a stream made later does",
     wait_orders_new_stream, YES, ORDERED},
    {"wait, per thread", "after cuCtxWaitEvent the work of a per-thread stream does",
     wait_orders_per_thread, YES, ORDERED},
    {"wait, host", "cuCtxWaitEvent returns while the event is incomplete", wait_returns_at_once,
     YES, "no: ordered waits on the host, so lazy is better"},
    {"capture, fence", "cuCtxRecordEvent fails while a stream captures", record_fails_in_capture,
     YES, "no: deferred blocks could get fences during captures"},
    {"capture, record", "cuEventRecord in another stream does not harm a global capture",
     stream_record_is_harmless, YES, "no: frees in a stream's order break captures"},
    {"capture, free", "cuMemFree of a relaxed thread does not harm a global capture",
     relaxed_free_is_harmless, YES, "no: memory cannot be given back during captures"},
    {"capture, free waits", "cuMemFree of a relaxed thread waits, while another stream captures",
     relaxed_free_waits, YES, BARRIER},
    {"capture, wait", "cuCtxSynchronize under way and a capture begun meanwhile both go well",
     context_wait_survives_capture, YES,
     "no: sync must not wait by context in programs that may capture"},
    {"capture, event wait",
     "cuEventSynchronize under way and a capture begun meanwhile both go well",
     event_wait_survives_capture, YES, "no: sync has no wait that a capture may meet"},
    {"capture, waiting free", "cuMemFree under way and a capture begun meanwhile both go well",
     free_survives_capture, EITHER, "no: such programs break natively too"},
    {"ids", "cuStreamGetId never gives a number again", stream_ids_are_new, YES,
     "no: frees in a stream's order may wait for another stream's event"},
    {"map, offset", "cuMemMap maps a page's memory from an offset other than zero",
     maps_from_an_offset, NO, "yes: the parts of large pages may be joined to larger blocks"},
    {"exit", "the driver works in an exit handler registered after the first context",
     driver_outlives_us, YES, "no: the library must not call the driver in its exit handler"},
};
enum { QUESTIONS = sizeof questions / sizeof questions[0] };

static void tell(const struct question *question, enum answer answer) {
    static const char *const words[] = {"no", "yes", "cannot be asked here", "either"};
    printf("{\"name\": \"%s\", \"value\": {\"answer\": \"%s\", \"expected\": \"%s\", "
           "\"decides\": \"%s\"}}\n",
           question->asks, words[answer], words[question->expected], question->decides);
    fflush(stdout);
}

static int list(void) {
    for (int i = 0; i < QUESTIONS; i++)
        puts(questions[i].name);
    return 0;
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--list") == 0)
        return list();
    for (int i = 0; count == 3 && i < QUESTIONS; i++)
        if (strcmp(arguments[2], questions[i].name) == 0) {
            kernels_path = arguments[1];
            begin_with(kernels_path);
            at_exit = &questions[i];
            tell(&questions[i], questions[i].ask());
            return 0;
        }
    fprintf(stderr, "usage: unknowns KERNELS_PTX QUESTION | unknowns --list\n");
    return 2;
}
