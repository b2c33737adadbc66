/* A clock that stands still, or jumps, as under libfaketime: defined here, it is everybody's. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/surroundings/scene.h"

enum { TRUE, STANDING, JUMPING };
static int kind; /* set while one thread runs */

int clock_gettime(clockid_t clock, struct timespec *time) {
    static time_t jump;
    long result = syscall(SYS_clock_gettime, clock, time);
    if (kind == STANDING)
        *time = (struct timespec){.tv_sec = 1000000};
    else if (kind == JUMPING)
        time->tv_sec += 1000 * (__atomic_add_fetch(&jump, 1, __ATOMIC_RELAXED) % 7);
    return (int)result;
}

/* Beside a process that is stopped, and answers nobody who asks it for memory. */
static void beside_stopped(int chosen) {
    int ready[2];
    char byte;
    must(pipe(ready) == 0, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        begin();
        use_memory();
        must(write(ready[1], "r", 1) == 1, "the parent");
        for (;;)
            pause();
    }
    must(child > 0 && read(ready[0], &byte, 1) == 1 && kill(child, SIGSTOP) == 0, "a child");
    begin();
    kind = chosen;
    use_memory();
    run_out();
    use_memory();
    kind = TRUE;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void run_standing(void) {
    beside_stopped(STANDING);
}

static void run_jumping(void) {
    beside_stopped(JUMPING);
}

static const struct scene scenes[] = {
    {"standing", run_standing},
    {"jumping", run_jumping},
};

int main(int argc, char **argv) {
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof *scenes);
}
