// Measures on a real driver what its documentation leaves open and the pool depends on: what
// waiting, recording and allocating cost, which calls wait, what forbidden calls return, how
// pitched rows are laid out, what the driver does with a handle that is not its own.
//
// Times are the median of many. Each section runs in a process of its own, so that it does not
// affect the others.
//
// usage: measure KERNELS_PTX SECTION | measure --list
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interpose/features/share/token.h"
#include "tests/gpu/measuring.h"

enum { TIMES = 401 };

// The median time of `call`, evaluated in this function.
#define MEDIAN(call)                                                                               \
    ({                                                                                             \
        static uint64_t took_[TIMES];                                                              \
        for (int i_ = 0; i_ < TIMES; i_++) {                                                       \
            uint64_t begin_ = now();                                                               \
            MUST(call);                                                                            \
            took_[i_] = now() - begin_;                                                            \
        }                                                                                          \
        (long long)median(took_, TIMES);                                                           \
    })

// ---- calls that newer drivers have ----

// The rest needs them.
static void need_fences(void) {
    if (record_context && wait_context)
        return;
    say("cuCtxRecordEvent and cuCtxWaitEvent are there", "", 0);
    exit(0);
}

// ---- what waiting and recording cost ----

static void measure_fences(int streams) {
    char detail[64];
    CUevent event;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    snprintf(detail, sizeof detail, "%d streams", streams);
    say("idle cuCtxSynchronize, ns", detail, MEDIAN(cuCtxSynchronize()));
    if (record_context) {
        say("cuCtxRecordEvent, ns", detail, MEDIAN(record_context(context, event)));
        MUST(cuEventSynchronize(event));
        say("cuEventQuery of a complete fence, ns", detail, MEDIAN(cuEventQuery(event)));
        say("cuEventSynchronize of a complete fence, ns", detail,
            MEDIAN(cuEventSynchronize(event)));
        if (wait_context)
            say("cuCtxWaitEvent, ns", detail, MEDIAN(wait_context(context, event)));
    }
    MUST(cuCtxSynchronize());
    MUST(cuEventDestroy(event));
}

// A fence and a wait while every stream is busy: what a free costs in `lazy` and `ordered`.
static void measure_busy_fences(CUstream *streams, int count) {
    static uint64_t recording[51], waiting[51];
    CUevent event;
    char detail[64];
    if (!record_context || !wait_context || count == 0)
        return;
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < count; i++)
        start_spin(streams[i]);
    for (int i = 0; i < 51; i++) {
        uint64_t begin = now();
        MUST(record_context(context, event));
        uint64_t between = now();
        MUST(wait_context(context, event));
        recording[i] = between - begin;
        waiting[i] = now() - between;
    }
    bool busy = cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY;
    MUST(cuCtxSynchronize());
    MUST(cuEventDestroy(event));
    snprintf(detail, sizeof detail, "%d %s streams", count, busy ? "busy" : "no longer busy");
    say("cuCtxRecordEvent, ns", detail, (long long)median(recording, 51));
    say("cuCtxWaitEvent, ns", detail, (long long)median(waiting, 51));
}

static void measure_by_streams(void) {
    static const int counts[] = {0, 1, 8, 128};
    CUstream streams[128];
    int made = 0;
    say("cuCtxRecordEvent is there", "", record_context != NULL);
    say("cuCtxWaitEvent is there", "", wait_context != NULL);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        while (made < counts[i])
            streams[made++] = new_stream();
        measure_fences(made);
        measure_busy_fences(streams, made);
    }
    while (made > 0)
        MUST(cuStreamDestroy(streams[--made]));
}

// ---- allocating ----

static const size_t sizes[] = {512,     64 << 10, 1 << 20,        (1 << 20) + 1,
                               2 << 20, 64 << 20, (size_t)1 << 30};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void measure_allocations(void) {
    for (size_t i = 0; i < SIZES && has_room(sizes[i]); i++) {
        char detail[64];
        static uint64_t allocating[51], freeing[51];
        for (int round = 0; round < 51; round++) {
            CUdeviceptr pointer;
            uint64_t begin = now();
            MUST(cuMemAlloc(&pointer, sizes[i]));
            uint64_t between = now();
            MUST(cuMemFree(pointer));
            allocating[round] = between - begin;
            freeing[round] = now() - between;
        }
        snprintf(detail, sizeof detail, "%zu bytes", sizes[i]);
        say("cuMemAlloc, ns", detail, (long long)median(allocating, 51));
        say("cuMemFree, ns", detail, (long long)median(freeing, 51));
    }
}

// Whether allocating and freeing a block that nobody uses waits for a kernel of another stream.
static void measure_waiting_frees(void) {
    CUstream stream = new_stream();
    for (size_t i = 0; i < SIZES && has_room(sizes[i]); i++) {
        CUdeviceptr pointer, neighbour;
        char detail[64];
        MUST(cuMemAlloc(&neighbour, sizes[i]));
        MUST(cuMemAlloc(&pointer, sizes[i]));
        start_spin(stream);
        uint64_t begin = now();
        MUST(cuMemFree(pointer));
        long long freeing = (long long)(now() - begin);
        MUST(cuCtxSynchronize());
        start_spin(stream);
        begin = now();
        MUST(cuMemAlloc(&pointer, sizes[i]));
        long long allocating = (long long)(now() - begin);
        MUST(cuCtxSynchronize());
        MUST(cuMemFree(pointer));
        MUST(cuMemFree(neighbour));
        snprintf(detail, sizeof detail, "%zu bytes", sizes[i]);
        say("cuMemFree beside a kernel of 50 ms, ns", detail, freeing);
        say("cuMemAlloc beside a kernel of 50 ms, ns", detail, allocating);
    }
    MUST(cuStreamDestroy(stream));
}

// ---- a free in another thread ----

struct other_free {
    CUdeviceptr block;
    bool begins, ended; // atomic
    uint64_t took;
};

static void *free_in_thread(void *argument) {
    struct other_free *other = argument;
    MUST(cuCtxSetCurrent(context));
    uint64_t begin = now();
    __atomic_store_n(&other->begins, true, __ATOMIC_RELEASE);
    MUST(cuMemFree(other->block));
    other->took = now() - begin;
    __atomic_store_n(&other->ended, true, __ATOMIC_RELEASE);
    return NULL;
}

// While another thread frees beside a kernel: the times of this thread's calls, and whether the
// free was over when they returned.
static void measure_calls_beside(struct other_free *other, CUdeviceptr word, CUstream stream) {
    CUdeviceptr block;
    while (!__atomic_load_n(&other->begins, __ATOMIC_ACQUIRE))
        usleep(100);
    usleep(5000); // into the driver's free
    uint64_t begin = now();
    MUST(cuMemsetD8Async(word, 0, 1, stream));
    say("a set in another stream while a thread frees beside a kernel of 50 ms, ns", "",
        (long long)(now() - begin));
    begin = now();
    MUST(cuMemAlloc(&block, 64 << 10));
    say("cuMemAlloc while a thread frees beside a kernel of 50 ms, ns", "",
        (long long)(now() - begin));
    say("the free was over then", "", __atomic_load_n(&other->ended, __ATOMIC_ACQUIRE));
    MUST(cuMemFree(block));
}

// Whether a free in one thread holds up the calls of another.
static void measure_free_in_thread(void) {
    struct other_free other = {0};
    CUstream busy = new_stream(), idle = new_stream();
    CUdeviceptr word;
    pthread_t thread;
    MUST(cuMemAlloc(&word, 64 << 10));
    MUST(cuMemAlloc(&other.block, 4 << 20));
    MUST(cuMemsetD8Async(word, 0, 1, idle)); // its code is loaded
    MUST(cuCtxSynchronize());
    start_spin(busy);
    if (pthread_create(&thread, NULL, free_in_thread, &other) != 0)
        exit(1);
    measure_calls_beside(&other, word, idle);
    pthread_join(thread, NULL);
    say("cuMemFree in a thread, beside a kernel of 50 ms, ns", "", (long long)other.took);
    MUST(cuMemFree(word));
    MUST(cuStreamDestroy(busy));
    MUST(cuStreamDestroy(idle));
}

static void measure_alignment_of(size_t bytes, const char *what) {
    CUdeviceptr pointers[256], bits = 0;
    for (int i = 0; i < 256; i++) {
        MUST(cuMemAlloc(&pointers[i], bytes));
        bits |= pointers[i];
    }
    say(what, "", (long long)(bits & -bits));
    for (int i = 0; i < 256; i++)
        MUST(cuMemFree(pointers[i]));
}

/* The pool lets blocks below 1 MiB start where the driver would. Each size is an odd multiple of
 * 512 bytes when rounded up to one. */
static void measure_alignment(void) {
    measure_alignment_of(1, "alignment of blocks of 1 byte");
    measure_alignment_of(100400, "alignment of blocks of 100,400 bytes");
    measure_alignment_of(1000500, "alignment of blocks of 1,000,500 bytes");
    measure_alignment_of(1100000, "alignment of blocks of 1,100,000 bytes");
}

static void measure_pitch(unsigned element) {
    size_t last = 0;
    printf("{\"name\": \"pitch from width, element %u\", \"values\": [", element);
    for (size_t width = element, first = 1; width <= 70000; width += width < 4200 ? element : 997) {
        CUdeviceptr pointer;
        size_t pitch;
        MUST(cuMemAllocPitch(&pointer, &pitch, width, 3, element));
        MUST(cuMemFree(pointer));
        if (pitch != last)
            printf("%s[%zu, %zu]", first ? "" : ", ", width, pitch), first = 0;
        last = pitch;
    }
    printf("]}\n");
}

// What the pool takes for granted: of any height the pitch is the same, and the range is that of
// the rows.
static void measure_pitched_ranges(void) {
    static const size_t widths[] = {1, 100, 1000, 10000, 70000}, heights[] = {1, 3, 1000};
    long long other = 0, most = 0;
    for (size_t i = 0; i < 15; i++) {
        CUdeviceptr pointer, start;
        size_t pitch, size;
        static size_t first;
        MUST(cuMemAllocPitch(&pointer, &pitch, widths[i / 3], heights[i % 3], 4));
        MUST(cuMemGetAddressRange(&start, &size, pointer));
        MUST(cuMemFree(pointer));
        first = i % 3 ? first : pitch;
        other += pitch != first;
        long long more = (long long)size - (long long)(pitch * heights[i % 3]);
        most = more > most ? more : most;
    }
    say("pitches that depend on the height, of 10", "", other);
    say("range of pitched memory, beyond pitch times height", "", most);
}

// ---- what is forbidden while a stream captures ----

struct capture {
    CUstream stream;
    CUgraph graph;
};

static struct capture begin_capture(CUstreamCaptureMode mode) {
    struct capture capture = {new_stream(), NULL};
    MUST(cuStreamBeginCapture(capture.stream, mode));
    return capture;
}

// Also says whether the call has broken the capture.
static void end_capture(struct capture *capture, const char *call, const char *mode,
                        CUresult result) {
    char detail[96];
    snprintf(detail, sizeof detail, "%s, %s", mode, call);
    say("code during a capture", detail, result);
    say("code of the capture's end", detail, cuStreamEndCapture(capture->stream, &capture->graph));
    if (capture->graph)
        cuGraphDestroy(capture->graph);
    MUST(cuStreamDestroy(capture->stream));
}

static void measure_capture(CUstreamCaptureMode mode, const char *name) {
    CUdeviceptr kept, pointer = 0;
    size_t free_bytes, total;
    CUevent event;
    MUST(cuMemAlloc(&kept, 4096));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
#define DURING(call)                                                                               \
    do {                                                                                           \
        struct capture capture = begin_capture(mode);                                              \
        CUresult result = call;                                                                    \
        end_capture(&capture, #call, name, result);                                                \
    } while (0)
    DURING(cuMemAlloc(&pointer, 4096));
    if (pointer)
        MUST(cuMemFree(pointer));
    CUdeviceptr victim;
    MUST(cuMemAlloc(&victim, 4096));
    DURING(cuMemFree(victim));
    cuMemFree(victim); // may be free already
    DURING(cuCtxSynchronize());
    DURING(cuEventQuery(event));
    DURING(cuMemGetInfo(&free_bytes, &total));
    if (record_context)
        DURING(record_context(context, event));
    if (wait_context)
        DURING(wait_context(context, event));
#undef DURING
    MUST(cuEventDestroy(event));
    MUST(cuMemFree(kept));
}

// ---- what a fence covers, and which handles are accepted ----

struct answers {
    CUresult allocate, free, info;
    CUdeviceptr block;
};

static void CUDA_CB in_callback(void *data) {
    struct answers *answers = data;
    CUdeviceptr other = 0;
    size_t free_bytes, total;
    answers->info = cuMemGetInfo(&free_bytes, &total);
    answers->allocate = cuMemAlloc(&other, 4096);
    answers->free = cuMemFree(answers->block);
}

// Documented as not permitted there; it may also wait without end, and is cut off then.
static void measure_callback(void) {
    struct answers answers = {-1, -1, -1, 0};
    CUstream stream = new_stream();
    MUST(cuMemAlloc(&answers.block, 4096));
    MUST(cuLaunchHostFunc(stream, in_callback, &answers));
    MUST(cuStreamSynchronize(stream));
    say("code in a host function", "cuMemGetInfo", answers.info);
    say("code in a host function", "cuMemAlloc", answers.allocate);
    say("code in a host function", "cuMemFree", answers.free);
    MUST(cuStreamDestroy(stream));
}

static void measure_destroyed_stream(void) {
    CUevent event;
    need_fences();
    CUstream stream = new_stream();
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    start_spin(stream);
    MUST(cuStreamDestroy(stream));
    MUST(record_context(context, event));
    say("a fence covers work of a destroyed stream", "",
        cuEventQuery(event) == CUDA_ERROR_NOT_READY);
    MUST(cuEventSynchronize(event));
    MUST(cuEventDestroy(event));
}

static CUresult open_and_close(CUipcMemHandle handle) {
    CUdeviceptr opened = 0;
    CUresult result = cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (result == CUDA_SUCCESS)
        MUST(cuIpcCloseMemHandle(opened));
    return result;
}

// A handle of the driver from another process, which lives until it is released.
static pid_t start_exporter(int *from, int *to, const char *kernels) {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0)
        exit(1);
    pid_t child = fork();
    *from = up[0];
    *to = down[1];
    if (child != 0) {
        close(up[1]); // so that its end is seen
        return child;
    }
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    close(down[1]);
    begin_with(kernels);
    MUST(cuMemAlloc(&pointer, 2 << 20));
    MUST(cuIpcGetMemHandle(&handle, pointer));
    bool given = write(up[1], &handle, sizeof handle) == sizeof handle;
    _exit(!given || read(down[0], &handle, 1) != 0);
}

// Which bytes of a handle the driver checks: those whose change makes it return another code.
static void measure_bytes_of_a_handle(CUipcMemHandle real) {
    printf("{\"name\": \"code by the byte of a handle that is changed\", \"values\": [");
    for (size_t i = 0; i < sizeof real; i++) {
        CUipcMemHandle changed = real;
        ((unsigned char *)&changed)[i] ^= 0x5a;
        printf("%s[%zu, %d]", i ? ", " : "", i, (int)open_and_close(changed));
    }
    printf("]}\n");
}

// What the driver returns for bytes that are not its handle, in particular for our token.
static void measure_handles(const char *kernels) {
    struct bfc_token token = {.pid_namespace = 4026531836,
                              .table = 0x123456789abcdef0,
                              .pid = getpid(),
                              .slot = 1,
                              .generation = 7,
                              .key = {1, 2, 3}};
    CUipcMemHandle real, made_up;
    int from, to, last = 0;
    _Static_assert(sizeof token == sizeof made_up, "a token takes a handle's place");
    pid_t exporter = start_exporter(&from, &to, kernels);
    begin_with(kernels);
    if (read(from, &real, sizeof real) != sizeof real) {
        fprintf(stderr, "the driver gives no handle\n");
        exit(1);
    }
    say("cuIpcOpenMemHandle of another process's handle", "", open_and_close(real));
    for (int i = 0; i < (int)sizeof real; i++)
        if (((const unsigned char *)&real)[i])
            last = i + 1;
    say("bytes of a handle up to the last that is not zero", "", last);
    bfc_token_seal(&token);
    memcpy(&made_up, &token, sizeof made_up);
    say("cuIpcOpenMemHandle of a token of bfcpreload's", "", open_and_close(made_up));
    memset(&made_up, 0, sizeof made_up);
    say("cuIpcOpenMemHandle of zeros", "", open_and_close(made_up));
    memset(&made_up, 0x42, sizeof made_up);
    say("cuIpcOpenMemHandle of bytes that are no handle", "", open_and_close(made_up));
    measure_bytes_of_a_handle(real);
    say("cuIpcOpenMemHandle of the handle, after all that", "", open_and_close(real));
    close(to);
    waitpid(exporter, NULL, 0);
}

static void measure_entries(void) {
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    static const char *const names[][2] = {{"cuMemAlloc", "cuMemAlloc_v2"},
                                           {"cuMemFree", "cuMemFree_v2"},
                                           {"cuMemGetInfo", "cuMemGetInfo_v2"},
                                           {"cuCtxSynchronize", "cuCtxSynchronize"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *entry = NULL;
        CUresult result = cuGetProcAddress(names[i][0], &entry, 12000, 0, NULL);
        say("cuGetProcAddress and dlsym give the same pointer", names[i][0],
            result == CUDA_SUCCESS && entry == dlsym(libcuda, names[i][1]));
    }
}

// ---- the sections ----

static void measure_captures(void) {
    measure_capture(CU_STREAM_CAPTURE_MODE_GLOBAL, "global");
    measure_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread local");
    measure_capture(CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed");
}

static void measure_pitches(void) {
    measure_pitch(4);
    measure_pitch(8);
    measure_pitch(16);
    measure_pitched_ranges();
}

static const struct {
    const char *name;
    void (*measure)(void);
} sections[] = {
    {"entries", measure_entries},
    {"fences", measure_by_streams},
    {"allocations", measure_allocations},
    {"alignment", measure_alignment},
    {"waiting", measure_waiting_frees},
    {"thread", measure_free_in_thread},
    {"destroyed stream", measure_destroyed_stream},
    {"captures", measure_captures},
    {"pitches", measure_pitches},
    {"callback", measure_callback},
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

static int list(void) {
    for (int i = 0; i < SECTIONS; i++)
        puts(sections[i].name);
    puts("handles");
    return 0;
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--list") == 0)
        return list();
    for (int i = 0; count == 3 && i < SECTIONS; i++)
        if (strcmp(arguments[2], sections[i].name) == 0) {
            begin_with(arguments[1]);
            sections[i].measure();
            return 0;
        }
    if (count == 3 && strcmp(arguments[2], "handles") == 0) {
        measure_handles(arguments[1]); // forks before CUDA begins
        return 0;
    }
    fprintf(stderr, "usage: measure KERNELS_PTX SECTION | measure --list\n");
    return 2;
}
