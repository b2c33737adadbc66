/* A child forked after the first use of CUDA cannot use it [F pytorch: "Cannot re-initialize CUDA
 * in forked subprocess"]; the parent goes on. */
#include <sys/wait.h>

#include "tests/conformance/gpu.h"

static void be_child(void *block) {
    void *pointer = NULL;
    tell("the child's malloc fails", allocate(&pointer, 4096) != 0);
    tell("the child's free fails", release(block) != 0);
    printf("~ malloc in the child: %d\n", allocate(&pointer, 4096));
    printf("~ free in the child: %d\n", release(block));
    fflush(stdout);
    _exit(7);
}

int main(void) {
    int status = 0;
    use_device(0);
    void *block = new_block(4096);
    fill(NULL, block, 4096, 3);
    MUST(synchronize());
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        be_child(block);
    waitpid(child, &status, 0);
    tell("the child ended well", WIFEXITED(status) && WEXITSTATUS(status) == 7);
    tell("the block is intact", holds(block, 4096, 3));
    say("the parent's free", release(block));
    say("the parent's next", release(new_block(4096)));
    return 0;
}
