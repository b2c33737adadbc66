/*
 * The ends of a process whose memory is mapped by page: children that were forked and exit, or
 * become another program, touch nothing of their parent's; and a process exits while its threads
 * make, move and give back pages. As natively.
 */
#include <sys/wait.h>

#include "tests/conformance/gpu.h"

enum { THREADS = 3 };
static const size_t bytes = 24 * MIB + 700;
static pthread_barrier_t begun; /* a thread that first asks for CUDA in an exit is refused */

static void tell_end(const char *what, pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    printf("%s: %s %d\n", what, WIFEXITED(status) ? "exited" : "killed", status);
}

/* In a child of fork, where CUDA cannot be used. */
static void try_in_child(void *block) {
    void *other = NULL;
    say("allocate in a child", allocate(&other, bytes));
    say("free in a child", release(block));
}

static void fork_and_exit(void *block) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        try_in_child(block);
        exit(0);
    }
    tell_end("a child", pid);
}

static void fork_and_execute(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "ends", "again", (char *)NULL);
        _exit(2);
    }
    tell_end("a child that became another program", pid);
}

/* Larger and larger ones, of which pages have to move. */
static void *allocate_on_and_on(void *unused) {
    void *blocks[2];
    use_device(0);
    pthread_barrier_wait(&begun);
    for (size_t i = 1;; i = i % 40 + 1) {
        for (int b = 0; b < 2; b++)
            if (allocate(&blocks[b], i * MIB) != 0)
                return unused; /* the exit has begun */
        for (int b = 0; b < 2; b++)
            if (release(blocks[b]) != 0)
                return unused;
    }
}

static int use_and_exit(void) {
    use_device(0);
    void *block = new_block(bytes);
    fill(NULL, block, bytes, 4);
    tell("a new program's bytes", holds(block, bytes, 4));
    pthread_barrier_init(&begun, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, allocate_on_and_on, NULL);
    }
    pthread_barrier_wait(&begun);
    usleep(20000);
    return 0;
}

int main(int count, char **arguments) {
    if (count > 1)
        return arguments[1][0] == 'a' ? use_and_exit() : 2;
    use_device(0);
    void *block = new_block(bytes);
    fill(NULL, block, bytes, 3);
    MUST(synchronize());
    fork_and_exit(block);
    tell("the parent's bytes", holds(block, bytes, 3));
    fork_and_execute();
    tell("the parent's bytes", holds(block, bytes, 3));
    say("free", release(block));
    return use_and_exit();
}
