/*
 * Sharing between preloaded processes, where it may go wrong: memory freed and allocated again,
 * processes killed, users and folders apart, importers without the preload. What natively goes as
 * well is in the conformance cases 39 to 42.
 *
 * usage: sharing SCENARIO      (preloaded; exit status 77: this machine cannot show it)
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/integration/ipc/sharing.h"

/* ---- lives of blocks ---- */

/* Old and new tokens of one address: the old one is refused, the new one right. */
static int import_reused(const struct other *exporter) {
    use_device(0);
    share_handle old = taken(exporter);
    char *before = opened(old);
    must_be(holds(before, BYTES, 1), "the first block's bytes");
    pass(exporter);
    share_handle new = taken(exporter);
    must_refuse(old, "a freed block's token is refused");
    char *block = opened(new);
    must_be(by_pages() || block == before, "the second block lies where the first did");
    must_be(holds(block, BYTES / 2, 2), "the second block's bytes");
    CUdeviceptr start;
    size_t size;
    MUST(cuMemGetAddressRange(&start, &size, address(block + 100)));
    must_be(start == address(block) && size == BYTES / 2, "the second block's size");
    MUST(close_shared(before));
    must_be(holds(block, BYTES / 2, 2), "still open after one close of two");
    MUST(close_shared(block));
    must_be(close_shared(block) != 0 && close_shared(before) != 0, "no third close");
    pass(exporter);
    return 0;
}

static int run_reused(void) {
    struct other other;
    if (fork_other(&other))
        return import_reused(&other);
    use_device(0);
    char *keep = new_block(BYTES), *block = filled_block(BYTES, 1);
    share_handle old = shared(block);
    give(&other, &old, sizeof old);
    await(&other);
    MUST(release(block));
    char *again = filled_block(BYTES / 2, 2);
    must_be(again == block, "the block is used again");
    share_handle new = shared(again);
    must_be(differ(old, new), "another block, another token");
    give(&other, &new, sizeof new);
    await(&other);
    MUST(release(again));
    MUST(release(keep));
    return end_of(&other);
}

/* A shared block's region outlives a shortage of memory that takes all others. */
static int import_held(const struct other *exporter) {
    use_device(0);
    char *block = opened(taken(exporter));
    pass(exporter);
    await(exporter);
    must_be(holds(block, BYTES, 5), "the shared block's bytes after the shortage");
    MUST(close_shared(block));
    return 0;
}

static int run_held(void) {
    struct other other;
    size_t free_bytes, total;
    void *large = NULL, *none = NULL;
    if (fork_other(&other))
        return import_held(&other);
    use_device(0);
    char *block = filled_block(BYTES, 5);
    share_handle handle = shared(block);
    give(&other, &handle, sizeof handle);
    await(&other);
    MUST(release(new_block(64 * MIB)));
    MUST(memory_info(&free_bytes, &total));
    must_be(allocate(&none, total) != 0, "there is a shortage");
    MUST(allocate(&large, free_bytes - 8 * MIB));
    pass(&other);
    must_be(end_of(&other) == 0, "the importer is well");
    must_be(holds(block, BYTES, 5), "the exporter's own view");
    MUST(release(large));
    MUST(release(block));
    return 0;
}

/* ---- deaths of processes ---- */

static int run_killed_exporter(void) {
    struct other other;
    if (fork_other(&other)) {
        use_device(0);
        share_handle handle = shared(filled_block(BYTES, 1));
        give(&other, &handle, sizeof handle);
        for (;;)
            pause();
    }
    share_handle handle = taken(&other);
    kill(other.pid, SIGKILL);
    must_be(end_of(&other) == 1000, "the exporter was killed");
    must_be(files_of(other.pid) == 1, "its table is left");
    use_device(0);
    void *block = NULL;
    must_be(open_shared(&block, handle) != 0, "a killed exporter's token is refused");
    void *own = new_block(BYTES);
    (void)shared(own);
    must_be(files_of(other.pid) == 0, "the next exporter sweeps what it left");
    must_be(files_of(getpid()) == 1, "and has a table of its own");
    MUST(release(own));
    return 0;
}

static int run_killed_importer(void) {
    struct other other;
    size_t before, after, total;
    use_device(0); /* in the parent alone: the child is a program of its own */
    MUST(release(new_block(1)));
    MUST(memory_info(&before, &total));
    char *block = filled_block(BYTES, 1);
    if (fork_other(&other)) {
        dup2(other.from, STDIN_FILENO);
        dup2(other.to, STDOUT_FILENO);
        execl("/proc/self/exe", "sharing", "as-importer-to-be-killed", (char *)NULL);
        return 2;
    }
    share_handle handle = shared(block);
    give(&other, &handle, sizeof handle);
    await(&other);
    kill(other.pid, SIGKILL);
    must_be(end_of(&other) == 1000, "the importer was killed");
    MUST(release(block));
    MUST(memory_info(&after, &total));
    must_be(after == before, "nothing of the block is left");
    block = filled_block(BYTES, 3);
    must_be(differ(handle, shared(block)), "another block, another token");
    MUST(release(block));
    return 0;
}

static int be_killed(void) {
    const struct other exporter = {.from = STDIN_FILENO, .to = STDOUT_FILENO};
    use_device(0);
    char *block = opened(taken(&exporter));
    must_be(holds(block, BYTES, 1), "its bytes");
    pass(&exporter);
    for (;;)
        pause();
    return 0;
}

/* A forked child of an exporter ends, with all its destructors: the table stays. */
static int run_forked_child(void) {
    struct other importer, child;
    if (fork_other(&importer)) {
        use_device(0);
        char *block = opened(taken(&importer));
        must_be(holds(block, BYTES, 1), "its bytes");
        MUST(close_shared(block));
        return 0;
    }
    use_device(0);
    char *block = filled_block(BYTES, 1);
    share_handle handle = shared(block);
    if (fork_other(&child)) {
        void *pointer = NULL;
        share_handle again;
        must_be(open_shared(&pointer, handle) != 0 && share(&again, block) != 0 &&
                    close_shared(block) != 0,
                "a forked child has no CUDA");
        return 0;
    }
    must_be(end_of(&child) == 0, "the child is well");
    give(&importer, &handle, sizeof handle);
    must_be(end_of(&importer) == 0, "the importer is well");
    MUST(release(block));
    return 0;
}

/* Whatever the umask; and nothing is left behind. */
static int run_file(void) {
    struct other other;
    if (fork_other(&other)) {
        umask(0);
        use_device(0);
        (void)shared(new_block(BYTES));
        pass(&other);
        await(&other);
        return 0;
    }
    await(&other);
    char name[300] = "";
    struct stat status;
    DIR *folder = opendir("/dev/shm");
    char part[32];
    snprintf(part, sizeof part, ".%d.", other.pid);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, "bfcipc.", 7) == 0 && strstr(entry->d_name, part))
            snprintf(name, sizeof name, "/dev/shm/%s", entry->d_name);
    closedir(folder);
    must_be(stat(name, &status) == 0, "there is a table");
    must_be((status.st_mode & 07777) == 0600 && status.st_uid == getuid(), "the user's alone");
    pass(&other);
    must_be(end_of(&other) == 0, "the exporter is well");
    must_be(files_of(other.pid) == 0, "its table went with it");
    return 0;
}

/* ---- those who are not to get in ---- */

/* A block of ones for an importer, which does the looking. */
static int export_until_end_of(struct other *importer) {
    use_device(0);
    char *block = filled_block(BYTES, 1);
    share_handle handle = shared(block);
    give(importer, &handle, sizeof handle);
    int status = end_of(importer);
    MUST(release(block));
    return status;
}

static int import_damaged(const struct other *exporter) {
    use_device(0);
    share_handle handle = taken(exporter), damaged;
    unsigned char *bytes = (unsigned char *)&damaged;
    for (size_t bit = 0; bit < 8 * sizeof damaged; bit++) {
        void *block = NULL;
        damaged = handle;
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        must_be(open_shared(&block, damaged) != 0, "a changed token is refused");
    }
    for (size_t kept = 0; kept < sizeof damaged; kept++) {
        void *block = NULL;
        damaged = handle;
        if (bytes[kept] == 0)
            continue; /* cut off, it may be whole */
        memset(bytes + kept, 0, sizeof damaged - kept);
        must_be(open_shared(&block, damaged) != 0, "a token cut short is refused");
    }
    char *block = opened(handle);
    must_be(holds(block, BYTES, 1), "the whole one is as good as ever");
    MUST(close_shared(block));
    return 0;
}

static int run_damaged(void) {
    struct other other;
    if (fork_other(&other))
        return import_damaged(&other);
    return export_until_end_of(&other);
}

/* A child that opens a token after it has changed something about itself. */
static int run_apart(bool (*change)(void)) {
    struct other other;
    if (fork_other(&other)) {
        share_handle handle = taken(&other);
        if (!change())
            return 77;
        use_device(0);
        must_refuse(handle, "one from elsewhere is refused");
        return 0;
    }
    return export_until_end_of(&other);
}

static bool become_nobody(void) {
    return setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
}

static bool have_own_folder(void) {
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/dev/shm", "tmpfs", 0, NULL) == 0;
}

static int run_other_user(void) {
    return run_apart(become_nobody);
}

static int run_own_folder(void) {
    return run_apart(have_own_folder);
}

/* ---- importers without the preload ---- */

/* Answers: 0 right bytes, 3 wrong bytes, 4 refused. */
static int import_plainly(void) {
    const struct other exporter = {.from = STDIN_FILENO};
    void *block = NULL;
    share_handle handle = taken(&exporter);
    use_device(0);
    if (open_shared(&block, handle) != 0)
        return 4;
    return holds(block, BYTES, 2) ? 0 : 3;
}

static int imported_by(share_handle handle, const char *unset, const char *set) {
    struct other other;
    if (fork_other(&other)) {
        if (unset)
            unsetenv(unset);
        if (set)
            setenv(set, "1", 1);
        dup2(other.from, STDIN_FILENO);
        execl("/proc/self/exe", "sharing", "as-plain-importer", (char *)NULL);
        _exit(2);
    }
    give(&other, &handle, sizeof handle);
    return end_of(&other);
}

static int plainly_imported(share_handle handle) {
    return imported_by(handle, "LD_PRELOAD", NULL);
}

/* Not pooling itself, it still understands what those say who do. */
static int run_disabled_importer(void) {
    use_device(0);
    char *first = filled_block(BYTES, 1), *second = filled_block(BYTES, 2);
    must_be(imported_by(shared(second), NULL, "BFC_DISABLE") == 0, "it reads the right bytes");
    MUST(release(first));
    MUST(release(second));
    return 0;
}

static int run_plain_importer(void) {
    use_device(0);
    char *first = filled_block(BYTES, 2), *second = filled_block(BYTES, 2);
    must_be(plainly_imported(shared(first)) == 4, "it refuses the first block's token");
    must_be(plainly_imported(shared(second)) == 4, "it refuses the second block's token");
    MUST(release(first));
    MUST(release(second));
    return 0;
}

/* With BFC_IPC=off. */
static int run_off(void) {
    share_handle handle;
    use_device(0);
    char *first = filled_block(BYTES, 2), *second = filled_block(BYTES, 2);
    must_be(share(&handle, second) == CUDA_ERROR_NOT_SUPPORTED, "a block within a region cannot");
    if (by_pages())
        must_be(share(&handle, first) == CUDA_ERROR_NOT_SUPPORTED, "nor can one in pages");
    else
        must_be(plainly_imported(shared(first)) == 0, "the block at a region's start can");
    for (int i = 0; i < 3; i++) {
        char *later = filled_block(BYTES, 2);
        must_be(plainly_imported(shared(later)) == 0, "what comes after the first export can");
        MUST(release(later));
    }
    MUST(release(first));
    MUST(release(second));
    return 0;
}

/* ---- reuse ---- */

/* With BFC_FREE=ordered: what was handed out pending is waited for before it is shared. */
static int run_waits(void) {
    use_device(0);
    CUstream stream = new_stream();
    char *block = new_block(BYTES);
    slow_fill(stream, block, BYTES, 1, 100);
    MUST(release(block));
    char *again = new_block(BYTES);
    must_be(again == block, "it was handed out at once");
    must_be(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY, "its old work is under way");
    (void)shared(again);
    must_be(cuStreamQuery(stream) == CUDA_SUCCESS, "and complete once it is shared");
    MUST(release(again));
    return 0;
}

/* With BFC_FREE=ordered: a shared region's blocks follow the stricter rule. */
static int run_stricter(void) {
    const unsigned value = 1;
    use_device(0);
    CUstream stream = new_stream();
    char *keep = new_block(BYTES);
    for (int how = 0; how < 2; how++) {
        char *block = new_block(BYTES);
        if (how == 0)
            (void)shared(keep);
        else
            MUST(cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(keep)));
        slow_fill(stream, block, BYTES, 1, 100);
        MUST(release(block));
        char *other = new_block(BYTES);
        must_be(other != block || cuStreamQuery(stream) == CUDA_SUCCESS,
                "it is not handed out before its work is complete");
        MUST(synchronize());
        MUST(release(other));
    }
    MUST(release(keep));
    return 0;
}

/* ---- devices ---- */

/* Memory of the first device, opened with the second one current. */
static int import_across(const struct other *exporter) {
    int ordinal = -1;
    use_device(1);
    char *own = filled_block(BYTES, 9), *block = opened(taken(exporter));
    must_be(holds(block, BYTES, 1), "its bytes");
    MUST(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address(block)));
    must_be(ordinal == 0, "the first device's");
    MUST(close_shared(block));
    MUST(release(own));
    return 0;
}

/* One block opened on both devices, a second one of its region on the first alone. */
static int import_on_both(const struct other *exporter) {
    share_handle first = taken(exporter), second = taken(exporter);
    use_device(0);
    char *one = opened(first), *two = opened(second);
    use_device(1);
    char *again = opened(first);
    must_be(holds(again, BYTES, 1), "its bytes on the second device");
    MUST(close_shared(again));
    use_device(0);
    must_be(holds(one, BYTES, 1) && holds(two, BYTES, 2), "both blocks' bytes on the first");
    MUST(close_shared(two));
    MUST(close_shared(one));
    must_be(close_shared(one) != 0, "every opening was closed");
    return 0;
}

static int run_both(void) {
    struct other other;
    if (fork_other(&other))
        return import_on_both(&other);
    use_device(0);
    share_handle handles[] = {shared(filled_block(BYTES, 1)), shared(filled_block(BYTES, 2))};
    give(&other, handles, sizeof handles);
    return end_of(&other);
}

static int run_across(void) {
    struct other other;
    if (fork_other(&other))
        return import_across(&other);
    use_device(0);
    char *keep = new_block(BYTES), *block = filled_block(BYTES, 1);
    share_handle handle = shared(block);
    give(&other, &handle, sizeof handle);
    int status = end_of(&other);
    MUST(release(block));
    MUST(release(keep));
    return status;
}

/* The importer's context ends with mappings in it; a new one starts afresh. */
static int import_context(const struct other *exporter) {
    use_device(0);
    share_handle handle = taken(exporter);
    char *block = opened(handle);
    reset_device();
    must_be(close_shared(block) != 0, "it went with its context");
    block = opened(handle);
    must_be(holds(block, BYTES, 1), "its bytes");
    MUST(close_shared(block));
    return 0;
}

static int run_context(void) {
    struct other other;
    if (fork_other(&other))
        return import_context(&other);
    use_device(0);
    char *block = filled_block(BYTES, 1);
    share_handle handle = shared(block);
    give(&other, &handle, sizeof handle);
    must_be(end_of(&other) == 0, "the importer is well");
    reset_device();
    must_be(share(&handle, block) != 0, "the exporter's block went with its context");
    return 0;
}

/* The stand-in's descriptor is positioned where the range begins. */
static int run_descriptor(void) {
    unsigned char bytes[BYTES] = {0};
    int file = -1;
    use_device(0);
    char *small = new_block(700), *block = filled_block(3 * MIB, 4);
    CUdeviceptr start = (address(block) + MIB) & ~(CUdeviceptr)4095;
    MUST(cuMemGetHandleForAddressRange(&file, start, MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    must_be(read(file, bytes, BYTES) == BYTES, "it can be read");
    must_be(bytes[0] == 4 && bytes[BYTES - 1] == 4, "the block's bytes");
    close(file);
    MUST(release(block));
    MUST(release(small));
    return 0;
}

/* ---- many at once ---- */

enum { THREADS = 6, ROUNDS = 60, TOKENS = 8 };
static share_handle many[TOKENS];

static void *open_and_close(void *argument) {
    unsigned random = (unsigned)(uintptr_t)argument;
    use_device(0);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned which = (random = random * 1664525u + 1013904223u) >> 29;
        char *block = opened(many[which]);
        must_be(holds(block, BYTES, which + 1), "the right block's bytes");
        MUST(close_shared(block));
    }
    return NULL;
}

static int import_many(const struct other *exporter) {
    pthread_t threads[THREADS];
    take(exporter, many, sizeof many);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, open_and_close, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    use_device(0);
    char *block = opened(many[0]);
    MUST(close_shared(block));
    must_be(close_shared(block) != 0, "every opening was closed");
    pass(exporter);
    return 0;
}

static void *share_and_free(void *argument) {
    use_device(0);
    for (int round = 0; round < ROUNDS; round++) {
        char *block = new_block(BYTES + (size_t)(uintptr_t)argument);
        must_be(!differ(shared(block), shared(block + 100)), "one token a block");
        MUST(release(block));
    }
    return NULL;
}

static int run_threads(void) {
    struct other other;
    pthread_t threads[THREADS];
    char *blocks[TOKENS];
    if (fork_other(&other))
        return import_many(&other);
    use_device(0);
    for (unsigned i = 0; i < TOKENS; i++)
        many[i] = shared(blocks[i] = filled_block(BYTES, i + 1));
    give(&other, many, sizeof many);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, share_and_free, (void *)(i * 512));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    await(&other);
    for (unsigned i = 0; i < TOKENS; i++)
        MUST(release(blocks[i]));
    return end_of(&other);
}

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    {"reused", run_reused},
    {"held", run_held},
    {"killed-exporter", run_killed_exporter},
    {"killed-importer", run_killed_importer},
    {"as-importer-to-be-killed", be_killed},
    {"forked-child", run_forked_child},
    {"file", run_file},
    {"damaged", run_damaged},
    {"other-user", run_other_user},
    {"own-folder", run_own_folder},
    {"plain-importer", run_plain_importer},
    {"as-plain-importer", import_plainly},
    {"disabled-importer", run_disabled_importer},
    {"off", run_off},
    {"waits", run_waits},
    {"stricter", run_stricter},
    {"across", run_across},
    {"both", run_both},
    {"context", run_context},
    {"descriptor", run_descriptor},
    {"threads", run_threads},
};

int main(int count, char **arguments) {
    for (size_t i = 0; count == 2 && i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(arguments[1], scenarios[i].name) == 0)
            return scenarios[i].run();
    fprintf(stderr, "usage: sharing SCENARIO\n");
    return 2;
}
