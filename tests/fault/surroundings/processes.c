/* Forks, ends and execs, from each kind of thread while others work; and very many threads. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fault/surroundings/scene.h"

extern char **environ;

enum { WORKERS = 3, FORKS = 5, MANY = 2000 };

/* ---- threads that work all the time ---- */

static CUcontext context;
static int rounds; /* atomic */
static bool over;  /* atomic */

static void *work_on(void *unused) {
    must(cuCtxSetCurrent(context) == CUDA_SUCCESS, "the context");
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        use_memory();
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

static pthread_t workers[WORKERS];

static void start_workers(void) {
    begin();
    must(cuCtxGetCurrent(&context) == CUDA_SUCCESS, "the context");
    for (int i = 0; i < WORKERS; i++)
        must(pthread_create(&workers[i], NULL, work_on, NULL) == 0, "a thread");
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < WORKERS)
        sched_yield();
}

static void end_workers(void) {
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
}

/* ---- children ---- */

static CUdeviceptr kept;

static _Noreturn void try_in_child(void) {
    CUdeviceptr pointer;
    CUresult allocated = cuMemAlloc(&pointer, 4096), freed = cuMemFree(kept);
    _exit(allocated == CUDA_SUCCESS || freed == CUDA_SUCCESS ? 100 : (int)allocated);
}

static void await(const char *what, pid_t child) {
    int status = 0;
    must(child > 0 && waitpid(child, &status, 0) == child, "a child");
    report_end(what, status);
}

static void fork_in_each_way(void) {
    char *arguments[] = {(char *)"true", NULL};
    pid_t child = fork();
    if (child == 0)
        try_in_child();
    await("fork, allocates", child);
    child = fork();
    if (child == 0)
        _exit(3);
    await("fork, _exit", child);
    child = fork();
    if (child == 0) {
        execv("/bin/true", arguments);
        _exit(127);
    }
    await("fork, exec", child);
    child = vfork();
    if (child == 0) {
        execv("/bin/true", arguments);
        _exit(127);
    }
    await("vfork, exec", child);
    must(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0, "posix_spawn");
    await("posix_spawn", child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        try_in_child();
    await("clone, allocates", child);
}

/* The stand-in, as most libraries, is not to be relied on in a child of several threads: it may
 * hold its own lock at the fork. So children allocate only where nobody else works. */
static void run_forks(void) {
    begin();
    must(cuMemAlloc(&kept, 4096) == CUDA_SUCCESS, "a block");
    fork_in_each_way();
    in_thread(fork_in_each_way);
    use_memory();
    must(cuMemFree(kept) == CUDA_SUCCESS, "a free");
}

static void fork_and_end(void) {
    char *arguments[] = {(char *)"true", NULL};
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(3);
        await("fork, _exit", child);
        child = fork();
        if (child == 0) {
            execv("/bin/true", arguments);
            _exit(127);
        }
        await("fork, exec", child);
        child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0)
            _exit(4);
        await("clone, _exit", child);
        child = vfork();
        if (child == 0)
            _exit(5);
        await("vfork, _exit", child);
    }
}

static void run_forks_among_threads(void) {
    start_workers();
    fork_and_end();
    in_thread(fork_and_end);
    end_workers();
}

/* A child that ends by exit runs our destructors, too: the segment is its parent's. */
static void run_exit_of_child(void) {
    begin();
    use_memory();
    pid_t child = fork();
    if (child == 0)
        exit(6);
    await("fork, exit", child);
    use_memory();
}

/* Before the first call: the child is a process of its own. */
static void run_fork_before(void) {
    in_child("a child that works", work);
    work();
}

/* A process that becomes another program and begins anew, in the same process id. */
static void run_exec(void) {
    work();
    if (getenv("AGAIN"))
        return;
    setenv("AGAIN", "1", 1);
    execl("/proc/self/exe", "scene", "exec", (char *)NULL);
}

/* ---- ends ---- */

static void (*end)(void);

static void by_exit(void) {
    exit(7);
}
static void by_exit_at_once(void) {
    _exit(8);
}
static void by_quick_exit(void) {
    quick_exit(9);
}
static void by_abort(void) {
    abort();
}
static void by_exec(void) {
    execl("/bin/false", "false", (char *)NULL);
}
static void by_kill(void) {
    kill(getpid(), SIGKILL);
}

/* Without workers: natively, a thread that allocates while the process exits is on its own. */
static void end_in_main(void) {
    begin();
    use_memory();
    end();
}

static void end_in_thread(void) {
    begin();
    use_memory();
    in_thread(end);
}

static void end_among_threads(void) {
    start_workers();
    end();
}

static void end_in_thread_among_threads(void) {
    start_workers();
    in_thread(end);
}

/* The main thread ends, others work on and end the process. */
static void *outlive(void *unused) {
    must(cuCtxSetCurrent(context) == CUDA_SUCCESS, "the context");
    use_memory();
    usleep(20000);
    use_memory();
    exit(10);
    return unused;
}

static void end_main_thread(void) {
    pthread_t thread;
    begin();
    use_memory();
    must(cuCtxGetCurrent(&context) == CUDA_SUCCESS, "the context");
    must(pthread_create(&thread, NULL, outlive, NULL) == 0, "a thread");
    pthread_exit(NULL);
}

static void in_each_place(const char *how, void (*chosen)(void)) {
    static const struct {
        const char *name;
        void (*run)(void);
    } places[] = {{"in main", end_in_main},
                  {"in a thread", end_in_thread},
                  {"among threads", end_among_threads},
                  {"in a thread among threads", end_in_thread_among_threads}};
    char what[64];
    end = chosen;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(what, sizeof what, "%s %s", how, places[i].name);
        in_child(what, places[i].run);
    }
}

static void run_ends(void) {
    in_each_place("_exit", by_exit_at_once);
    in_each_place("abort", by_abort);
    in_each_place("exec", by_exec);
    in_each_place("kill", by_kill);
    in_child("pthread_exit of main", end_main_thread);
}

/* By exit, when others work, natively ends as it may: what they report does not count. */
static void *work_silently(void *unused) {
    CUdeviceptr block;
    cuCtxSetCurrent(context);
    for (;;) {
        if (cuMemAlloc(&block, 5000) == CUDA_SUCCESS)
            cuMemFree(block);
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

static void exit_among_silent_threads(void) {
    pthread_t thread;
    begin();
    must(cuCtxGetCurrent(&context) == CUDA_SUCCESS, "the context");
    for (int i = 0; i < WORKERS; i++)
        must(pthread_create(&thread, NULL, work_silently, NULL) == 0, "a thread");
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 100)
        sched_yield();
    end();
}

static void run_exits(void) {
    end = by_exit;
    in_child("exit in main", end_in_main);
    in_child("exit in a thread", end_in_thread);
    for (int i = 0; i < 5; i++)
        in_child("exit among threads", exit_among_silent_threads);
    end = by_quick_exit;
    in_child("quick_exit in main", end_in_main);
    in_child("quick_exit in a thread", end_in_thread);
    for (int i = 0; i < 5; i++)
        in_child("quick_exit among threads", exit_among_silent_threads);
}

/* ---- very many threads ---- */

static pthread_barrier_t all_there;
static int failed; /* atomic */

static void *take_one(void *unused) {
    CUdeviceptr block = 0;
    pthread_barrier_wait(&all_there);
    if (cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc(&block, 3000) != CUDA_SUCCESS ||
        cuMemFree(block) != CUDA_SUCCESS)
        __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
    return unused;
}

static void run_many_threads(void) {
    static pthread_t threads[MANY];
    pthread_attr_t small;
    begin();
    must(cuCtxGetCurrent(&context) == CUDA_SUCCESS, "the context");
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    int count = 0;
    pthread_barrier_init(&all_there, NULL, MANY + 1);
    while (count < MANY && pthread_create(&threads[count], &small, take_one, NULL) == 0)
        count++;
    if (count < MANY)
        skip("2,000 threads are not to be had");
    pthread_barrier_wait(&all_there);
    pid_t child = fork();
    if (child == 0)
        _exit(11);
    await("fork", child);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    report("failed: %d", failed);
    run_out();
}

/* ---- a thread that was told to end ---- */

/* The calls are no cancellation points; what another thread does next must not wait for this one.
 */
static void *take_when_cancelled(void *unused) {
    CUdeviceptr block = 0;
    CUipcMemHandle handle;
    CUresult codes[5];
    codes[0] = cuCtxSetCurrent(context);
    pthread_cancel(pthread_self());
    codes[1] = cuMemAlloc(&block, 1 << 20);
    codes[2] = cuIpcGetMemHandle(&handle, block);
    codes[3] = cuMemAlloc(&block, (size_t)1 << 45);
    codes[4] = cuMemAlloc(&block, (size_t)1 << 45);
    for (int i = 0; i < 5; i++)
        report("call %d: %d", i, (int)codes[i]);
    return unused;
}

static void run_cancelled(void) {
    pthread_t thread;
    void *result;
    begin();
    must(cuCtxGetCurrent(&context) == CUDA_SUCCESS, "the context");
    must(pthread_create(&thread, NULL, take_when_cancelled, NULL) == 0, "a thread");
    pthread_join(thread, &result);
    report("%s", result == PTHREAD_CANCELED ? "ended within a call" : "returned");
    use_memory();
    run_out();
}

/* ---- errno ---- */

/* The program's own, across the first allocation, growth, an out of memory and an export. */
static void run_errno(void) {
    CUdeviceptr block = 0, large = 0;
    CUipcMemHandle handle;
    begin();
    errno = EXFULL;
    cuMemAlloc(&block, 1000);
    report("after the first allocation: %d", errno);
    errno = EXFULL;
    cuMemAlloc(&large, 50 << 20);
    report("after growth: %d", errno);
    errno = EXFULL;
    cuMemAlloc(&large, (size_t)1 << 45);
    report("after an out of memory: %d", errno);
    errno = EXFULL;
    cuIpcGetMemHandle(&handle, block);
    report("after an export: %d", errno);
    errno = EXFULL;
    cuMemFree(block);
    report("after a free: %d", errno);
}

static const struct scene scenes[] = {
    {"errno", run_errno},
    {"cancelled", run_cancelled},
    {"forks", run_forks},
    {"forks-among-threads", run_forks_among_threads},
    {"exit-of-child", run_exit_of_child},
    {"fork-before", run_fork_before},
    {"exec", run_exec},
    {"ends", run_ends},
    {"exits", run_exits},
    {"many-threads", run_many_threads},
};

int main(int argc, char **argv) {
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof *scenes);
}
