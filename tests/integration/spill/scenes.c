/*
 * What a program sees of spilled memory (BFC_SPILL), a scene a run: scenes NAME. The device has 64
 * MiB (of two, where a scene needs them). Each scene checks what it sees; the first thing that is
 * wrong ends it with a line and status 1.
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/conformance/pointers.h"
#include "tests/integration/spill/copies.h"

enum { MOST = 64 };

/* ---- what there is ---- */

/* Of the stand-in driver: bytes of pinned host memory, or how often a call was made. */
static unsigned long long count_of(const char *name) {
    static unsigned long long (*count)(const char *);
    void *symbol = count ? NULL : dlsym(dlopen("libcuda.so.1", RTLD_NOW), "sim_call_count");
    if (symbol)
        memcpy(&count, &symbol, sizeof count);
    return count(name);
}

static unsigned long long pinned(void) {
    return count_of("pinned");
}

static size_t device_free(void) {
    size_t free_bytes, total;
    MUST(memory_info(&free_bytes, &total));
    return free_bytes;
}

/* Device memory has one unit of address in a window that the host cannot read; host memory is
 * neither in it nor hidden from the driver. */
static bool is_spilled(const void *pointer) {
    unsigned long long before = pinned();
    return before > 0 && DRIVER(cuMemHostGetFlags)(&(unsigned){0}, (void *)(uintptr_t)pointer) == 0;
}

/* The helper thread gives memory back soon. */
static bool comes_down_to(unsigned long long bytes) {
    for (int i = 0; i < 2000 && pinned() != bytes; i++)
        usleep(5000);
    return pinned() == bytes;
}

/* Fills the device; returns how many blocks it took. */
static size_t fill_device(void **blocks) {
    size_t count = 0;
    do {
        CHECK(count < MOST);
        blocks[count] = new_block(block_bytes);
    } while (!is_spilled(blocks[count++]));
    return count - 1;
}

/* A block that is spilled, on a device that is full. */
static void *new_spilled(void **blocks, size_t *count) {
    *count = fill_device(blocks);
    return blocks[*count];
}

/* ---- work that lasts ---- */

static int held;

static void hold(void *unused) {
    (void)unused;
    while (__atomic_load_n(&held, __ATOMIC_ACQUIRE))
        usleep(100);
}

/* What comes to the stream after this waits until let_go. */
static void hold_stream(CUstream stream) {
    __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
    MUST(DRIVER(cuLaunchHostFunc)(stream, hold, NULL));
}

static void let_go(void) {
    __atomic_store_n(&held, 0, __ATOMIC_RELEASE);
}

static void *let_go_later(void *unused) {
    usleep(50000);
    let_go();
    return unused;
}

static bool mode_is(const char *mode) {
    const char *set = getenv("BFC_FREE");
    return strcmp(set ? set : "sync", mode) == 0;
}

/* ---- contents ---- */

/* Every kind of copy and set, between device memory and spilled memory, both ways, and within it.
 */
static void contents(void) {
    void *blocks[MOST];
    size_t count;
    void *one = new_spilled(blocks, &count), *other = new_block(block_bytes);
    CUstream stream = new_stream();
    CHECK(is_spilled(other) && !is_spilled(blocks[0]));
    host_copies(one, stream);
    all_copies(one, blocks[0]);
    all_copies(blocks[0], one);
    all_copies(one, other);
}

/* What is asked for is 1.2 times the device, in parts of which each keeps its own bytes. */
static void more_than_fits(void) {
    enum { PARTS = 77 }; /* MiB */
    void *parts[PARTS];
    for (unsigned i = 0; i < PARTS; i++)
        fill(NULL, parts[i] = new_block(MIB), MIB, i + 1);
    CHECK(pinned() > 0);
    for (unsigned i = 0; i < PARTS; i++)
        CHECK(holds(parts[i], MIB, i + 1));
    for (unsigned i = 0; i < PARTS; i++)
        MUST(release(parts[i]));
    CHECK(comes_down_to(0));
}

/* ---- answers ---- */

static void refused_alike(const void *pointer) {
    CUmemorytype type;
    void *host;
    CHECK(ask(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer) == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == CUDA_ERROR_INVALID_VALUE);
    CHECK(DRIVER(cuMemFreeHost)((void *)(uintptr_t)pointer) == CUDA_ERROR_INVALID_VALUE);
    MUST(ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    CHECK(release((char *)(uintptr_t)pointer + 512) == CUDA_ERROR_INVALID_VALUE);
}

/* All attributes of a spilled block are those of device memory, but that it cannot be exported. */
static void attributes(void) {
    void *blocks[MOST];
    size_t count, size;
    struct told device = {0}, spilled = {0};
    CUdeviceptr start;
    char *block = new_spilled(blocks, &count);
    MUST(ask_all(&device, (char *)blocks[0] + 5));
    MUST(ask_all(&spilled, block + 5));
    CHECK(spilled.context == device.context && spilled.memory_type == device.memory_type);
    CHECK(spilled.ordinal == device.ordinal && !spilled.managed && spilled.mapped == device.mapped);
    CHECK(spilled.host_pointer == NULL && spilled.device_pointer == address(block) + 5);
    CHECK(spilled.range_start == address(block) && spilled.range_size == block_bytes);
    CHECK(spilled.mapping_base <= address(block) && spilled.mapping_size >= block_bytes);
    CHECK(spilled.id != device.id && spilled.id == id_of(block));
    CHECK(device.ipc && !spilled.ipc);
    MUST(DRIVER(cuMemGetAddressRange)(&start, &size, address(block) + block_bytes - 1));
    CHECK(start == address(block) && size == block_bytes);
    refused_alike(blocks[0]);
    refused_alike(block);
    MUST(release(block));
    CHECK(ask(&start, CU_POINTER_ATTRIBUTE_BUFFER_ID, block) == CUDA_ERROR_INVALID_VALUE);
}

/* SYNC_MEMOPS can be set, read, and goes with the block. */
static void sync_memops(void) {
    void *blocks[MOST];
    size_t count;
    unsigned on = 1;
    unsigned long long is = 0;
    void *block = new_spilled(blocks, &count), *other = new_block(block_bytes);
    MUST(DRIVER(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(block)));
    MUST(ask(&is, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
    CHECK(is == 1);
    MUST(ask(&is, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, other));
    CHECK(is == 0);
    MUST(release(block));
    MUST(release(other));
    CHECK(comes_down_to(0));
}

/* What cannot be shared says so, and stays the program's. */
static void sharing(void) {
    void *blocks[MOST];
    size_t count;
    CUipcMemHandle handle;
    int file = -1;
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
    void *block = new_spilled(blocks, &count);
    MUST(DRIVER(cuIpcGetMemHandle)(&handle, address(blocks[0])));
    CHECK(DRIVER(cuIpcGetMemHandle)(&handle, address(block)) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(DRIVER(cuMemGetHandleForAddressRange)(&file, address(block), block_bytes,
                                                CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                                0) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(ask(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, block) == CUDA_ERROR_NOT_SUPPORTED);
    fill(NULL, block, block_bytes, 1);
    CHECK(holds(block, block_bytes, 1));
    MUST(release(block));
    CHECK(comes_down_to(0));
}

/* ---- coming and going ---- */

/* A freed block goes back to the host; where the device has room, it is asked first. */
static void back_again(void) {
    void *blocks[MOST];
    size_t count, before;
    void *block = new_spilled(blocks, &count);
    CHECK(pinned() == block_bytes);
    before = device_free();
    MUST(release(block));
    CHECK(comes_down_to(0) && device_free() == before);
    CHECK(is_spilled(block = new_block(block_bytes)));
    MUST(release(blocks[0]));
    CHECK(!is_spilled(blocks[0] = new_block(block_bytes)));
    CHECK(is_spilled(block) && pinned() == block_bytes);
    MUST(release(block));
    CHECK(release(block) == CUDA_ERROR_INVALID_VALUE);
    CHECK(comes_down_to(0));
}

/* BFC_SPILL=20M: two blocks of 8 MiB fit, and small ones beside them. */
static void size_of_it(void) {
    void *blocks[MOST], *small[3], *more;
    size_t count;
    void *one = new_spilled(blocks, &count), *two = new_block(block_bytes);
    CHECK(allocate(&more, block_bytes) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(allocate(&more, 512 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(allocate(&more, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 3; i++)
        CHECK(is_spilled(small[i] = new_block(100 * KIB)));
    CHECK(pinned() <= 20 * MIB && pinned() < 3 * block_bytes);
    MUST(release(two));
    CHECK(is_spilled(two = new_block(block_bytes)));
    for (int i = 0; i < 3; i++)
        MUST(release(small[i]));
    MUST(release(one));
    MUST(release(two));
    CHECK(comes_down_to(0));
}

/* More than the device has at all. */
static void beyond_device(void) {
    void *block = new_block(80 * MIB);
    CHECK(is_spilled(block));
    fill(NULL, block, 80 * MIB, 1);
    CHECK(holds(block, 80 * MIB, 1));
    MUST(release(block));
    CHECK(comes_down_to(0));
}

/* BFC_LIMIT=32M: what is spilled is no device memory. */
static void limit(void) {
    void *blocks[MOST];
    size_t count, free_bytes, total;
    new_spilled(blocks, &count);
    CHECK(count == 4);
    MUST(memory_info(&free_bytes, &total));
    CHECK(total == 32 * MIB && free_bytes == 0);
    MUST(release(blocks[0]));
    MUST(memory_info(&free_bytes, &total));
    CHECK(free_bytes == block_bytes);
}

/* ---- frees ---- */

/*
 * Work is under way when the block is freed. The stand-in frees host memory without waiting
 * (SIM_HOST_FREE_WAITS=0), and overwrites it: so who gives it back too early is found out.
 */
static void busy_free(void) {
    void *blocks[MOST];
    size_t count;
    pthread_t thread;
    CUstream stream = new_stream();
    void *block = new_spilled(blocks, &count);
    hold_stream(stream);
    fill(stream, block, block_bytes, 1);
    pthread_create(&thread, NULL, let_go_later, NULL);
    MUST(release(block));
    if (mode_is("sync"))
        CHECK(DRIVER(cuStreamQuery)(stream) == CUDA_SUCCESS);
    pthread_join(thread, NULL);
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(comes_down_to(0));
}

/* The same, and nothing goes as long as the work lasts: not by other calls either. */
static void long_free(void) {
    void *blocks[MOST], *other;
    size_t count;
    CUstream stream = new_stream();
    void *block = new_spilled(blocks, &count);
    if (mode_is("sync"))
        return;
    hold_stream(stream);
    fill(stream, block, block_bytes, 1);
    MUST(release(block));
    CHECK(pinned() == block_bytes);
    MUST(allocate(&other, block_bytes / 2));
    usleep(100000);
    CHECK(pinned() >= block_bytes + block_bytes / 2);
    let_go();
    MUST(DRIVER(cuStreamSynchronize)(stream));
    MUST(release(other));
    CHECK(comes_down_to(0));
}

static void give_up(int number) {
    static const char text[] = "a call waits for work that it has nothing to do with\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) >= 0)
        _exit(1);
}

/* Work of another stream goes on, and the driver's free waits for it (SIM_HOST_FREE_WAITS=1): who
 * frees or allocates does not. */
static void unrelated_work(void) {
    void *blocks[MOST], *other;
    size_t count;
    CUstream stream = new_stream(), busy = new_stream();
    void *block = new_spilled(blocks, &count), *second = new_block(block_bytes);
    signal(SIGALRM, give_up);
    hold_stream(busy);
    alarm(20);
    for (int i = 0; i < 8; i++) {
        MUST(release_async(block, stream));
        MUST(DRIVER(cuStreamSynchronize)(stream));
        block = new_block(block_bytes / 4);
    }
    MUST(release_async(second, stream));
    MUST(allocate(&other, block_bytes));
    MUST(release_async(block, stream));
    if (!mode_is("sync"))
        MUST(release(other));
    MUST(allocate(&block, block_bytes / 2));
    let_go();
    alarm(0);
    MUST(synchronize());
    if (mode_is("sync"))
        MUST(release(other));
    MUST(release(block));
    CHECK(comes_down_to(0));
}

/* The driver takes its time to have it back (SIM_LATENCY): what the program has freed is gone all
 * the same. */
static void freed_long_since(void) {
    void *blocks[MOST];
    size_t count, bytes;
    CUdeviceptr start;
    CUstream stream = new_stream();
    char *block = new_spilled(blocks, &count);
    MUST(release_async(block, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    for (int i = 0; i < 100; i++) {
        struct told told;
        CHECK(DRIVER(cuMemGetAddressRange)(&start, &bytes, address(block + MIB)) != CUDA_SUCCESS);
        CHECK(ask(&told.id, CU_POINTER_ATTRIBUTE_BUFFER_ID, block) == CUDA_ERROR_INVALID_VALUE);
        MUST(ask_all(&told, block));
        CHECK(told.context == NULL && told.host_pointer == NULL);
        usleep(500);
    }
    CHECK(comes_down_to(0));
}

/* In the order of a stream. */
static void async_free(void) {
    void *blocks[MOST];
    size_t count;
    CUstream stream = new_stream();
    void *block = new_spilled(blocks, &count);
    hold_stream(stream);
    fill(stream, block, block_bytes, 1);
    MUST(release_async(block, stream));
    CHECK(release_async(block, stream) == CUDA_ERROR_INVALID_VALUE);
    usleep(50000);
    CHECK(pinned() == block_bytes);
    let_go();
    MUST(DRIVER(cuStreamSynchronize)(stream));
    CHECK(comes_down_to(0));
}

/* ---- captures ---- */

/* A relaxed thread may allocate and free beside a capture, which stays well; nothing goes before
 * its end. */
static void captures(void) {
    void *blocks[MOST];
    size_t count;
    CUgraph graph;
    CUstream stream = new_stream(), work = new_stream();
    void *block = new_spilled(blocks, &count), *other;
    fill(work, blocks[0], 1, 1);
    MUST(synchronize());
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(DRIVER(cuThreadExchangeStreamCaptureMode)(&own));
    CHECK(is_spilled(other = new_block(block_bytes)));
    slow_fill(work, block, block_bytes, 1, 20);
    MUST(release(block));
    MUST(release(other));
    CHECK(pinned() == 2 * block_bytes);
    fill(stream, blocks[0], 1, 2);
    MUST(end_capture(stream, &graph));
    CHECK(graph != NULL);
    MUST(synchronize());
    CHECK(comes_down_to(0));
}

/* Nor what the driver's own free has been waited with for (BFC_LIMIT=32M BFC_PENDING_BUDGET=0). */
static void ready_beside_capture(void) {
    void *blocks[MOST];
    size_t count;
    CUgraph graph;
    CUstream stream = new_stream();
    CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
    void *block = new_spilled(blocks, &count);
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(DRIVER(cuThreadExchangeStreamCaptureMode)(&own));
    MUST(release(block));
    CHECK(pinned() == block_bytes);
    MUST(end_capture(stream, &graph));
    CHECK(comes_down_to(0));
}

/* A capture that bars the thread bars what it would spill, too. */
static void barred(void) {
    void *blocks[MOST], *other;
    size_t count;
    CUgraph graph = NULL;
    CUstream stream = new_stream();
    new_spilled(blocks, &count);
    unsigned long long before = count_of("cuMemHostAlloc");
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(allocate(&other, block_bytes) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(count_of("cuMemHostAlloc") == before);
    CHECK(end_capture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

/* ---- contexts, devices, processes ---- */

/* The spilled blocks of a context end with it, and their room is free again. */
static void context_end(void) {
    for (int round = 0; round < 3; round++) {
        void *blocks[MOST];
        size_t count;
        unsigned long long before = count_of("cuMemHostAlloc");
        void *block = new_spilled(blocks, &count), *other = new_block(block_bytes);
        CHECK(is_spilled(other) && count_of("cuMemHostAlloc") == before + 2);
        MUST(reset_device());
        CHECK(release(block) != CUDA_SUCCESS);
    }
    CHECK(pinned() <= 3 * block_bytes);
}

/* What a context had spilled goes with it, where another one is current then. BFC_SPILL=20M. */
static void other_context_end(void) {
    CUcontext context;
    for (int round = 0; round < 3; round++) {
        void *blocks[MOST];
        size_t count;
        MUST(CREATE_CONTEXT(&context, 0));
        CHECK(is_spilled(new_spilled(blocks, &count)) && is_spilled(new_block(block_bytes)));
        MUST(DRIVER(cuCtxDestroy)(context));
        CHECK(pinned() == 0);
    }
}

/* Another device's work on a spilled block, held up; device 0 is current. */
static CUstream use_by_peer(void *block) {
    CUcontext owner, accessor;
    MUST(DRIVER(cuCtxGetCurrent)(&owner));
    fill(NULL, block, block_bytes, 1);
    MUST(synchronize());
    choose_device(1);
    void *copy = new_block(block_bytes);
    MUST(DRIVER(cuCtxGetCurrent)(&accessor));
    MUST(DRIVER(cuCtxEnablePeerAccess)(owner, 0));
    CUstream stream = new_stream();
    MUST(DRIVER(cuMemcpyPeer)(address(copy), accessor, address(block), owner, block_bytes));
    MUST(synchronize());
    CHECK(holds(copy, block_bytes, 1));
    hold_stream(stream);
    fill(stream, block, block_bytes, 2);
    choose_device(0);
    return stream;
}

static void let_peer_go(CUstream stream) {
    let_go();
    choose_device(1);
    MUST(DRIVER(cuStreamSynchronize)(stream));
    choose_device(0);
    CHECK(comes_down_to(0));
}

/* The memory stays until the peer's work is done. */
static void peers(void) {
    void *blocks[MOST];
    size_t count;
    void *block = new_spilled(blocks, &count);
    CUstream stream = use_by_peer(block);
    MUST(release(block));
    usleep(50000);
    CHECK(pinned() == block_bytes);
    let_peer_go(stream);
}

/* And while something captures, when no fence can be had: host memory is never given back in the
 * hope that the call waits. BFC_PENDING_BUDGET=0. */
static void peers_and_capture(void) {
    void *blocks[MOST];
    size_t count;
    CUgraph graph;
    void *block = new_spilled(blocks, &count);
    CUstream stream = use_by_peer(block), capturing = new_stream();
    CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(begin_capture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(DRIVER(cuThreadExchangeStreamCaptureMode)(&own));
    MUST(release(block));
    CHECK(pinned() == block_bytes);
    MUST(end_capture(capturing, &graph));
    let_peer_go(stream);
}

/* The forked child forwards, and the parent goes on. */
static void forks(void) {
    void *blocks[MOST], *more;
    size_t count;
    int status;
    void *block = new_spilled(blocks, &count);
    pid_t child = fork();
    if (child == 0)
        _exit(allocate(&more, block_bytes) == 0 || release(block) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fill(NULL, block, block_bytes, 1);
    CHECK(holds(block, block_bytes, 1));
    MUST(release(block));
    CHECK(comes_down_to(0));
}

/* Spilled memory is in use when the process ends, and when it is killed. */
static void ends(void) {
    void *blocks[MOST];
    size_t count;
    CUstream stream = new_stream();
    slow_fill(stream, new_spilled(blocks, &count), block_bytes, 1, 20);
    puts("ready");
    fflush(stdout);
    if (getchar() == 'e')
        exit(0);
    for (;;)
        pause();
}

/* ---- failures ---- */

/* Something refuses at most three times, as SIM_FAIL says: out of memory, and then it goes on. (An
 * allocation may try again by itself, where the thread that gives host memory back was at work.) */
static void refused(void) {
    void *blocks[MOST], *block;
    size_t count = 0, refusals = 1;
    while (allocate(&blocks[count], block_bytes) == CUDA_SUCCESS)
        CHECK(!is_spilled(blocks[count]) && ++count < MOST);
    CHECK(pinned() == 0);
    while (allocate(&block, block_bytes) != CUDA_SUCCESS)
        CHECK(++refusals <= 3);
    CHECK(is_spilled(block));
    fill(NULL, block, block_bytes, 1);
    CHECK(holds(block, block_bytes, 1));
    MUST(release(block));
    CHECK(comes_down_to(0));
}

/* The driver does not take host memory back once: it goes with the next look. */
static void kept(void) {
    void *blocks[MOST];
    size_t count;
    void *block = new_spilled(blocks, &count);
    MUST(release(block));
    CHECK(comes_down_to(0));
}

/* Nothing can be spilled: as without BFC_SPILL. */
static void impossible(void) {
    void *blocks[MOST];
    size_t count = 0;
    while (allocate(&blocks[count], block_bytes) == CUDA_SUCCESS)
        CHECK(++count < MOST);
    CHECK(count == 8 && pinned() == 0);
    for (int i = 0; i < 3; i++)
        CHECK(allocate(&blocks[count], block_bytes) == CUDA_ERROR_OUT_OF_MEMORY);
}

/* ---- threads ---- */

enum { THREADS = 6, HELD = 12, ROUNDS = 150 };

/* Each thread keeps some blocks, of all sizes, with bytes of its own. */
static void *churn(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument, mine = seed * 16;
    void *blocks[HELD] = {NULL};
    size_t sizes[HELD] = {0};
    choose_device(0);
    CUstream stream = new_stream();
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned at = (seed = seed * 1664525 + 1013904223) >> 16, slot = at % HELD;
        if (blocks[slot]) {
            MUST(DRIVER(cuStreamSynchronize)(stream));
            CHECK(holds(blocks[slot], sizes[slot], mine + slot));
            MUST(at & 64 ? release(blocks[slot]) : release_async(blocks[slot], stream));
        }
        sizes[slot] = (at & 128 ? 1 : 16) * (1 + at % 91) * KIB;
        blocks[slot] = new_block(sizes[slot]);
        fill(stream, blocks[slot], sizes[slot], mine + slot);
    }
    MUST(DRIVER(cuStreamSynchronize)(stream));
    for (unsigned i = 0; i < HELD; i++)
        if (blocks[i])
            MUST(release(blocks[i]));
    return NULL;
}

static void threads(void) {
    pthread_t all[THREADS];
    void *blocks[MOST];
    size_t count = fill_device(blocks);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    for (size_t i = 0; i <= count; i++)
        MUST(release(blocks[i]));
    CHECK(comes_down_to(0));
}

static const struct {
    const char *name;
    void (*play)(void);
} scenes[] = {
    {"contents", contents},
    {"more_than_fits", more_than_fits},
    {"attributes", attributes},
    {"sync_memops", sync_memops},
    {"sharing", sharing},
    {"back_again", back_again},
    {"size_of_it", size_of_it},
    {"beyond_device", beyond_device},
    {"limit", limit},
    {"busy_free", busy_free},
    {"long_free", long_free},
    {"async_free", async_free},
    {"unrelated_work", unrelated_work},
    {"freed_long_since", freed_long_since},
    {"captures", captures},
    {"barred", barred},
    {"ready_beside_capture", ready_beside_capture},
    {"context_end", context_end},
    {"other_context_end", other_context_end},
    {"peers", peers},
    {"peers_and_capture", peers_and_capture},
    {"forks", forks},
    {"ends", ends},
    {"refused", refused},
    {"kept", kept},
    {"impossible", impossible},
    {"threads", threads},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(scenes[i].name, argv[1]) == 0) {
            use_device(0);
            scenes[i].play();
            return 0;
        }
    fprintf(stderr, "usage: scenes NAME\n");
    return 2;
}
