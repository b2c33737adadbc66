#include "tests/integration/routes/route.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 200, KEPT = 8, LARGEST = 96 * 1024 };

void route_fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why ? why : "failed");
    exit(1);
}

void *route_find(void *handle, const char *name) {
    void *found = dlsym(handle, name);
    if (!found)
        route_fail(name, dlerror());
    return found;
}

void route_begin(void *libcuda) {
    int (*init)(unsigned), (*retain)(void **, int), (*set_current)(void *);
    void *context = NULL;
    *(void **)&init = route_find(libcuda, "cuInit");
    *(void **)&retain = route_find(libcuda, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = route_find(libcuda, "cuCtxSetCurrent");
    if (init(0) != 0 || retain(&context, 0) != 0 || set_current(context) != 0)
        route_fail("no context", NULL);
}

struct block {
    uint64_t pointer;
    size_t bytes;
    unsigned char value;
};

static unsigned long check(const struct route *route, const struct block *block) {
    static unsigned char bytes[LARGEST];
    unsigned long sum = 0;
    if (route->read(bytes, block->pointer, block->bytes) != 0)
        route_fail("read", NULL);
    for (size_t i = 0; i < block->bytes; i++) {
        if (bytes[i] != block->value)
            route_fail("contents", "not what was written");
        sum += bytes[i];
    }
    return sum;
}

static unsigned long replace(const struct route *route, struct block *block, unsigned round) {
    unsigned long sum = 0;
    if (block->pointer != 0) {
        sum = check(route, block);
        if (route->release(block->pointer) != 0)
            route_fail("free", NULL);
    }
    block->bytes = 1 + (size_t)round * 7919 % LARGEST;
    block->value = (unsigned char)round;
    if (route->allocate(&block->pointer, block->bytes) != 0 ||
        route->set(block->pointer, block->value, block->bytes) != 0)
        route_fail("allocate", NULL);
    return sum;
}

// On a real device nobody counts driver calls: $ROUTE_REPORT, with the process's id behind it, is
// run and tells on standard error how much was pooled.
static void report(void) {
    char line[1024];
    const char *command = getenv("ROUTE_REPORT");
    if (!command || !strstr(getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "", "bfcpreload"))
        return;
    snprintf(line, sizeof line, "unset LD_PRELOAD; %s %d >&2", command, (int)getpid());
    if (system(line) != 0)
        route_fail(command, NULL);
}

int route_run(const struct route *route) {
    struct block blocks[KEPT];
    unsigned long sum = 0;
    uint64_t nothing = 0;
    memset(blocks, 0, sizeof blocks);
    for (unsigned round = 0; round < ROUNDS; round++)
        sum += replace(route, &blocks[round % 3 == 0 ? 0 : round % KEPT], round);
    for (size_t i = 0; i < KEPT; i++) {
        sum += check(route, &blocks[i]);
        printf("free %d, again %d\n", route->release(blocks[i].pointer),
               route->release(blocks[i].pointer));
    }
    printf("sum %lu\n", sum);
    printf("too much %d\n", route->allocate(&nothing, SIZE_MAX / 2));
    printf("free of nothing %d\n", route->release(0));
    report();
    return 0;
}
