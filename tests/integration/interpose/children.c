/* Forks and clones in the middle of its allocations: the child's CUDA is unusable, the parent's
 * whole. */
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/interpose/program.h"

static CUdeviceptr kept;

/* Exit status: the codes of an allocation and of a free of the parent's block. */
static void try_in_child(void) {
    CUdeviceptr pointer;
    int allocated = (int)cuMemAlloc(&pointer, 4096), freed = (int)cuMemFree(kept);
    _exit(allocated == 0 || freed == 0 ? 100 : allocated);
}

static void report(const char *how, pid_t child) {
    int status;
    waitpid(child, &status, 0);
    printf("%s: %s %d\n", how, WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int main(void) {
    use_primary(0);
    CHECK(cuMemAlloc(&kept, 4096));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        try_in_child();
    report("fork", child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        try_in_child();
    report("raw clone", child);
    child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    report("fork and exec", child);
    CHECK(cuMemsetD8(kept, 1, 4096));
    CHECK(cuMemFree(kept));
    return 0;
}
