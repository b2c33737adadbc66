/*
 * Sharing between preloaded processes of blocks whose importer needs the exporter's answer
 * (BFC_BACKING=pages): all pages of a block, processes that are killed, stopped or hostile, and
 * descriptors. What needs no such answer has to do as well.
 *
 * usage: sharing_pages SCENARIO      (preloaded)
 */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "interpose/features/share/token.h"
#include "tests/integration/ipc/sharing.h"

#define LARGE (40 * (size_t)MIB + 5000)

/* ---- whole blocks ---- */

/* Behind each other in one page: small ones are no more than their tokens say. */
static int import_whole(const struct other *exporter) {
    use_device(0);
    char *small = opened(taken(exporter)), *large = opened(taken(exporter));
    share_handle handle = taken(exporter);
    must_be(holds(small, BYTES, 1) && holds(large, LARGE, 2), "the bytes of both");
    char *again = opened(handle);
    must_be(again == large, "the same block is at one address");
    MUST(close_shared(again));
    fill(NULL, large, LARGE, 3);
    MUST(synchronize());
    MUST(close_shared(large));
    must_be(close_shared(large) != 0, "closed as often as opened");
    must_be(holds(small, BYTES, 1), "the other one is still open");
    MUST(close_shared(small));
    return 0;
}

static int run_whole(void) {
    struct other other;
    if (fork_other(&other))
        return import_whole(&other);
    use_device(0);
    char *small = filled_block(BYTES, 1), *large = filled_block(LARGE, 2);
    share_handle handles[] = {shared(small), shared(large), shared(large + LARGE / 2)};
    must_be(!differ(handles[1], handles[2]), "one token a block");
    give(&other, handles, sizeof handles);
    must_be(end_of(&other) == 0, "the importer is well");
    must_be(holds(large, LARGE, 3), "what the importer wrote");
    must_be(holds(small, BYTES, 1), "and nothing beside it");
    MUST(release(large));
    MUST(release(small));
    return 0;
}

/* What was exported stays while the pool gives back and moves all that it can. */
static int run_kept(void) {
    struct other other;
    size_t free_bytes, total;
    if (fork_other(&other)) {
        use_device(0);
        await(&other);
        char *block = opened(taken(&other));
        must_be(holds(block, LARGE, 2), "its bytes, after all was moved");
        MUST(close_shared(block));
        return 0;
    }
    use_device(0);
    char *before = new_block(64 * MIB), *block = filled_block(LARGE, 2);
    char *behind = new_block(64 * MIB);
    share_handle handle = shared(block);
    MUST(release(before));
    MUST(release(behind));
    MUST(memory_info(&free_bytes, &total));
    char *rest = new_block(free_bytes - 16 * MIB);
    pass(&other);
    give(&other, &handle, sizeof handle);
    must_be(end_of(&other) == 0, "the importer is well");
    MUST(release(rest));
    MUST(release(block));
    return 0;
}

/* ---- descriptors ---- */

static unsigned open_files(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* The library's threads open one now and then, and close it at once: the least of many counts. */
static unsigned kept_files(void) {
    unsigned least = open_files();
    for (int naps = 0; naps < 20; naps++) {
        usleep(10000);
        unsigned count = open_files();
        least = count < least ? count : least;
    }
    return least;
}

static void open_and_close(share_handle handle, size_t bytes, unsigned value) {
    char *block = opened(handle);
    must_be(holds(block, bytes, value), "its bytes");
    MUST(close_shared(block));
}

static int import_and_count(const struct other *exporter) {
    use_device(0);
    share_handle handle = taken(exporter);
    open_and_close(handle, LARGE, 1);
    unsigned before = kept_files();
    open_and_close(handle, LARGE, 1);
    must_be(kept_files() == before, "the importer is left no descriptor");
    return 0;
}

/* So a program that closes all descriptors which it does not know closes none of ours, and what it
 * executes inherits none. */
static int run_no_descriptors(void) {
    struct other other;
    if (fork_other(&other))
        return import_and_count(&other);
    use_device(0);
    char *first = filled_block(BYTES, 1), *block = filled_block(LARGE, 1);
    (void)shared(first); /* the stand-in's own files */
    unsigned before = kept_files();
    share_handle handle = shared(block);
    must_be(kept_files() == before, "an export opens nothing");
    give(&other, &handle, sizeof handle);
    must_be(end_of(&other) == 0, "the importer is well");
    must_be(kept_files() == before, "nor does an import");
    MUST(release(block));
    MUST(release(first));
    return 0;
}

static void allow_files(rlim_t most) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = most;
    must_be(setrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit can be set");
}

static int import_with_few_files(const struct other *exporter) {
    void *block = NULL;
    use_device(0);
    share_handle handle = taken(exporter);
    open_and_close(handle, LARGE, 1);
    unsigned before = kept_files();
    for (rlim_t spare = 0; spare < 6; spare++) {
        allow_files(before + spare - 1);
        int code = open_shared(&block, handle);
        allow_files(1024);
        must_be(code != 0, "too few descriptors");
        must_be(kept_files() == before, "and none is left over");
    }
    open_and_close(handle, LARGE, 1);
    return 0;
}

static int run_few_files(void) {
    struct other other;
    if (fork_other(&other))
        return import_with_few_files(&other);
    use_device(0);
    char *block = filled_block(LARGE, 1);
    share_handle handle = shared(block);
    give(&other, &handle, sizeof handle);
    must_be(end_of(&other) == 0, "the importer is well");
    MUST(release(block));
    return 0;
}

/* ---- others that are not well ---- */

/* A program of its own: shares a block, and waits for its end. */
static int be_exporter(void) {
    const struct other importer = {.from = STDIN_FILENO, .to = STDOUT_FILENO};
    use_device(0);
    share_handle handle = shared(filled_block(LARGE, 1));
    give(&importer, &handle, sizeof handle);
    char byte;
    return read(importer.from, &byte, 1) == 1 ? 0 : 1;
}

/* A program of its own: opens and closes until it is killed. */
static int be_importer(void) {
    const struct other exporter = {.from = STDIN_FILENO, .to = STDOUT_FILENO};
    use_device(0);
    share_handle handle = taken(&exporter);
    for (;;) {
        char *block = opened(handle);
        must_be(holds(block, BYTES, 1), "its bytes");
        MUST(close_shared(block));
    }
    return 0;
}

static void start(struct other *other, const char *part) {
    if (!fork_other(other))
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if it is stopped when the test fails */
    dup2(other->from, STDIN_FILENO);
    dup2(other->to, STDOUT_FILENO);
    execl("/proc/self/exe", "sharing_pages", part, (char *)NULL);
    _exit(2);
}

/* After so many microseconds, whatever this process does then. */
static void kill_after(pid_t pid, unsigned us) {
    fflush(stdout);
    if (fork() != 0)
        return;
    usleep(us);
    kill(pid, SIGKILL);
    _exit(0);
}

enum { KILLS = 12, STEP_US = 3400 };

static int run_importers_killed(void) {
    struct other other;
    use_device(0);
    char *block = filled_block(LARGE, 1);
    share_handle handle = shared(block);
    unsigned before = kept_files();
    for (unsigned i = 0; i < KILLS; i++) {
        start(&other, "as-importer");
        give(&other, &handle, sizeof handle);
        kill_after(other.pid, 20000 + i * STEP_US);
        must_be(end_of(&other) == 1000, "the importer was killed");
        close(other.from);
        close(other.to);
    }
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    must_be(kept_files() == before, "no descriptor is left");
    MUST(release(block));
    return 0;
}

/* The exporter of `run` ends, and its folder is looked at. */
static int run_importers_killed_and_look(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        exit(run_importers_killed());
    int status = 0;
    must_be(waitpid(pid, &status, 0) == pid && status == 0, "the exporter is well");
    must_be(files_of(pid) == 0, "nothing is left");
    return 0;
}

/* An open answers, with the block or an error; then all that it began is undone. */
static void open_until_refused(share_handle handle) {
    for (void *block = NULL; open_shared(&block, handle) == 0;)
        if (close_shared(block) != 0)
            must_be(false, "what was opened can be closed");
}

static int run_exporters_killed(void) {
    struct other other;
    size_t before = 0, after, total;
    use_device(0);
    MUST(release(new_block(1)));
    unsigned files = kept_files();
    for (unsigned i = 0; i < KILLS; i++) {
        start(&other, "as-exporter");
        share_handle handle = taken(&other);
        if (i == 0)
            open_and_close(handle, LARGE, 1);
        MUST(memory_info(&after, &total));
        before = i == 0 ? after : before;
        must_be(after == before, "nothing stays mapped");
        kill_after(other.pid, i * STEP_US);
        open_until_refused(handle);
        must_be(end_of(&other) == 1000, "the exporter was killed");
        close(other.from);
        close(other.to);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
    must_be(kept_files() == files, "no descriptor is left");
    char *own = new_block(BYTES);
    (void)shared(own);
    must_be(files_of(other.pid) == 0, "the next exporter sweeps what they left");
    MUST(release(own));
    return 0;
}

/* The importer does not wait for ever; nothing of it is left, and the exporter answers later. */
static int run_stopped(void) {
    struct other other;
    start(&other, "as-exporter");
    share_handle handle = taken(&other);
    use_device(0);
    open_and_close(handle, LARGE, 1);
    int status = 0;
    must_be(kill(other.pid, SIGSTOP) == 0 && waitpid(other.pid, &status, WUNTRACED) == other.pid &&
                WIFSTOPPED(status),
            "it has stopped");
    must_refuse(handle, "a stopped exporter's token");
    must_be(files_of(other.pid) == 1, "its table alone is left");
    kill(other.pid, SIGCONT);
    open_and_close(handle, LARGE, 1);
    pass(&other);
    must_be(end_of(&other) == 0, "the exporter is well");
    return 0;
}

/* ---- hostile ones, of the same user ---- */

static int wait_at_a_name(share_handle handle, unsigned number) {
    struct bfc_token token;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(&token, &handle, sizeof token);
    snprintf(address.sun_path, sizeof address.sun_path, "/dev/shm/bfcipc.%u.%llu.%d.%016llx.%016x",
             getuid(), (unsigned long long)token.pid_namespace, token.pid,
             (unsigned long long)token.table, number);
    int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    must_be(bind(file, (struct sockaddr *)&address, sizeof address) == 0 && listen(file, 4) == 0,
            "a socket beside the table");
    return file;
}

/* Takes calls, and says what nobody expects. */
static void talk_nonsense(int file) {
    char bytes[5000];
    memset(bytes, 0x5a, sizeof bytes);
    for (int length = 1;; length = length * 3 % (int)sizeof bytes) {
        int caller = accept(file, NULL, NULL);
        if (caller < 0)
            _exit(1);
        send(caller, bytes, (size_t)length, MSG_NOSIGNAL);
        close(caller);
    }
}

/* Some never say a word, one talks nonsense, one has gone. Others are served all the same. */
static int run_hostile(void) {
    struct other other;
    start(&other, "as-exporter");
    share_handle handle = taken(&other);
    int mute = wait_at_a_name(handle, 1), gone = wait_at_a_name(handle, 2);
    close(gone);
    int file = wait_at_a_name(handle, 3);
    fflush(stdout);
    pid_t talker = fork();
    if (talker == 0)
        talk_nonsense(file);
    use_device(0);
    for (int i = 0; i < 2; i++)
        open_and_close(handle, LARGE, 1);
    kill(talker, SIGKILL);
    waitpid(talker, NULL, 0);
    close(mute);
    pass(&other);
    must_be(end_of(&other) == 0, "the exporter is well");
    must_be(files_of(other.pid) == 0, "and has cleared up");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    {"whole", run_whole},
    {"kept", run_kept},
    {"no-descriptors", run_no_descriptors},
    {"few-files", run_few_files},
    {"importers-killed", run_importers_killed_and_look},
    {"exporters-killed", run_exporters_killed},
    {"stopped", run_stopped},
    {"hostile", run_hostile},
    {"as-exporter", be_exporter},
    {"as-importer", be_importer},
};

int main(int count, char **arguments) {
    for (size_t i = 0; count == 2 && i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(arguments[1], scenarios[i].name) == 0)
            return scenarios[i].run();
    fprintf(stderr, "usage: sharing_pages SCENARIO\n");
    return 2;
}
