// Measures on a real driver what pages cost (docs/internals/pages.md): each call of virtual memory
// management by the size of the page, alone, beside a kernel that runs meanwhile and does not use
// the page, and from another thread than the one that launched it; and whether unmapping waits for
// a kernel that does use it. Each section runs in a process of its own: the last one may fault.
//
// usage: page_costs KERNELS_PTX SECTION | page_costs --list
#include <pthread.h>

#include "tests/gpu/measuring.h"

#define MIB ((size_t)1 << 20)

static const size_t sizes[] = {2 * MIB, 8 * MIB, 32 * MIB, 128 * MIB, 512 * MIB};
enum { SIZES = sizeof sizes / sizeof sizes[0], ALONE = 21, BESIDE = 3 };

// ---- the calls ----

struct page {
    size_t bytes;
    CUdeviceptr start;
    CUmemGenericAllocationHandle handle;
};

static const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

static CUresult reserve(struct page *page) {
    return cuMemAddressReserve(&page->start, page->bytes, 0, 0, 0);
}

// As the library makes them: shareable.
static CUresult create(struct page *page) {
    CUmemAllocationProp what = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = here,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    };
    return cuMemCreate(&page->handle, page->bytes, &what, 0);
}

static CUresult map(struct page *page) {
    return cuMemMap(page->start, page->bytes, 0, page->handle, 0);
}

static CUresult allow(struct page *page) {
    CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return cuMemSetAccess(page->start, page->bytes, &access, 1);
}

static CUresult unmap(struct page *page) {
    return cuMemUnmap(page->start, page->bytes);
}

static CUresult release(struct page *page) {
    return cuMemRelease(page->handle);
}

static CUresult unreserve(struct page *page) {
    return cuMemAddressFree(page->start, page->bytes);
}

// In the order of a page's life.
static const struct {
    const char *name;
    CUresult (*call)(struct page *page);
} calls[] = {
    {"cuMemAddressReserve", reserve}, {"cuMemCreate", create}, {"cuMemMap", map},
    {"cuMemSetAccess", allow},        {"cuMemUnmap", unmap},   {"cuMemRelease", release},
    {"cuMemAddressFree", unreserve},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static uint64_t time_call(int call, struct page *page) {
    uint64_t begin = now();
    must(calls[call].call(page), calls[call].name);
    return now() - begin;
}

static void say_cost(int call, const char *what, size_t bytes, long long value) {
    char name[160], size[32];
    snprintf(name, sizeof name, "%s%s", calls[call].name, what);
    snprintf(size, sizeof size, "%zu MiB", bytes / MIB);
    say(name, size, value);
}

// ---- alone ----

static void measure_alone(void) {
    static uint64_t took[CALLS][ALONE];
    for (int i = 0; i < SIZES && has_room(sizes[i]); i++) {
        struct page page = {.bytes = sizes[i]};
        for (int round = 0; round < ALONE; round++)
            for (int call = 0; call < CALLS; call++)
                took[call][round] = time_call(call, &page);
        for (int call = 0; call < CALLS; call++)
            say_cost(call, ", ns", sizes[i], (long long)median(took[call], ALONE));
    }
}

// So many pages of 2 MiB next to each other: what one call for all of them costs.
static void measure_runs(void) {
    enum { PAGES = 64 };
    struct page whole = {.bytes = PAGES * 2 * MIB}, pages[PAGES];
    if (!has_room(whole.bytes))
        return;
    MUST(reserve(&whole));
    for (int i = 0; i < PAGES; i++) {
        pages[i] = (struct page){.bytes = 2 * MIB, .start = whole.start + (size_t)i * 2 * MIB};
        MUST(create(&pages[i]));
        MUST(map(&pages[i]));
    }
    uint64_t begin = now();
    MUST(allow(&whole));
    say("cuMemSetAccess of 64 pages of 2 MiB at once, ns", "", (long long)(now() - begin));
    begin = now();
    MUST(unmap(&whole));
    say("cuMemUnmap of 64 pages of 2 MiB at once, ns", "", (long long)(now() - begin));
    for (int i = 0; i < PAGES; i++)
        MUST(release(&pages[i]));
    MUST(unreserve(&whole));
}

// ---- beside a kernel ----

struct job {
    CUstream stream;
    int call;
    struct page *page;
    uint64_t took;
};

static void *time_in_thread(void *argument) {
    struct job *job = argument;
    MUST(cuCtxSetCurrent(context));
    job->took = time_call(job->call, job->page);
    return NULL;
}

// Whether the kernel was over after the call: the call has waited for it.
static bool time_beside(struct job *job, bool in_thread) {
    pthread_t thread;
    start_spin(job->stream);
    if (!in_thread)
        job->took = time_call(job->call, job->page);
    else if (pthread_create(&thread, NULL, time_in_thread, job) == 0)
        pthread_join(thread, NULL);
    bool waited = cuStreamQuery(job->stream) == CUDA_SUCCESS;
    MUST(cuStreamSynchronize(job->stream));
    return waited;
}

static void measure_busy(bool in_thread) {
    static uint64_t took[CALLS][BESIDE];
    const char *where =
        in_thread ? " by another thread, beside a kernel of 50 ms" : " beside a kernel of 50 ms";
    char figure[64], verdict[96];
    snprintf(figure, sizeof figure, "%s, ns", where);
    snprintf(verdict, sizeof verdict, "%s, times of 3 that it waited for that", where);
    CUstream stream = new_stream();
    for (int i = 0; i < SIZES && has_room(sizes[i]); i++) {
        struct page page = {.bytes = sizes[i]};
        int waited[CALLS] = {0};
        for (int round = 0; round < BESIDE; round++)
            for (int call = 0; call < CALLS; call++) {
                struct job job = {.stream = stream, .call = call, .page = &page};
                waited[call] += time_beside(&job, in_thread);
                took[call][round] = job.took;
            }
        for (int call = 0; call < CALLS; call++) {
            say_cost(call, figure, sizes[i], (long long)median(took[call], BESIDE));
            say_cost(call, verdict, sizes[i], waited[call]);
        }
    }
    MUST(cuStreamDestroy(stream));
}

static void measure_beside(void) {
    measure_busy(false);
}

static void measure_in_thread(void) {
    measure_busy(true);
}

// ---- under a kernel that uses the page ----

// The library never does this; the answer says what a mistake would come to.
static void measure_under_use(void) {
    struct page page = {.bytes = 2 * MIB};
    CUfunction slow_fill;
    CUstream stream = new_stream();
    unsigned long long count = 2 * MIB, us = SPIN_US;
    unsigned value = 1;
    MUST(cuModuleGetFunction(&slow_fill, module, "slow_fill"));
    for (int call = 0; calls[call].call != unmap; call++)
        time_call(call, &page);
    void *arguments[] = {&page.start, &count, &value, &us};
    MUST(cuLaunchKernel(slow_fill, 1, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
    uint64_t begin = now();
    CUresult result = unmap(&page);
    long long took = (long long)(now() - begin);
    bool over = cuStreamQuery(stream) != CUDA_ERROR_NOT_READY;
    say("cuMemUnmap of a page that a kernel of 50 ms uses, ns", "", took);
    say("cuMemUnmap of a page that a kernel uses", "code", result);
    say("cuMemUnmap of a page that a kernel uses", "the kernel was over after it", over);
    say("cuMemUnmap of a page that a kernel uses", "the kernel's code",
        cuStreamSynchronize(stream));
}

// ---- the sections ----

static const struct {
    const char *name;
    void (*measure)(void);
} sections[] = {
    {"alone", measure_alone},      {"runs", measure_runs},     {"beside", measure_beside},
    {"thread", measure_in_thread}, {"use", measure_under_use},
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

static int list(void) {
    for (int i = 0; i < SECTIONS; i++)
        puts(sections[i].name);
    return 0;
}

static bool has_pages(void) {
    int has = 0;
    MUST(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    if (!has)
        say("the device has virtual memory management", "", 0);
    return has;
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--list") == 0)
        return list();
    for (int i = 0; count == 3 && i < SECTIONS; i++)
        if (strcmp(arguments[2], sections[i].name) == 0) {
            begin_with(arguments[1]);
            if (has_pages())
                sections[i].measure();
            return 0;
        }
    fprintf(stderr, "usage: page_costs KERNELS_PTX SECTION | page_costs --list\n");
    return 2;
}
