/*
 * The process exits while the helper thread is giving memory back, one slow call after another:
 * when the driver's exit handler runs, no other thread is in the driver, and none enters it any
 * more.
 */
#include "tests/conformance/helper.h"

/* Registered before the driver's handler, so run after it. */
static void look(void) {
    usleep(150000);
    printf("calls when the driver had gone: %llu\n", counted("late"));
    fflush(stdout);
}

int main(void) {
    atexit(look);
    use_device(0);
    give_idle_memory();
    return 0;
}
