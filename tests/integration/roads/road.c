#include "tests/integration/roads/road.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 200, KEPT = 8, LARGEST = 96 * 1024 };

void road_fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why ? why : "failed");
    exit(1);
}

void *road_find(void *handle, const char *name) {
    void *found = dlsym(handle, name);
    if (!found)
        road_fail(name, dlerror());
    return found;
}

void road_begin(void *libcuda) {
    int (*init)(unsigned), (*retain)(void **, int), (*set_current)(void *);
    void *context = NULL;
    *(void **)&init = road_find(libcuda, "cuInit");
    *(void **)&retain = road_find(libcuda, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = road_find(libcuda, "cuCtxSetCurrent");
    if (init(0) != 0 || retain(&context, 0) != 0 || set_current(context) != 0)
        road_fail("no context", NULL);
}

struct block {
    uint64_t pointer;
    size_t bytes;
    unsigned char value;
};

static unsigned long check(const struct road *road, const struct block *block) {
    static unsigned char bytes[LARGEST];
    unsigned long sum = 0;
    if (road->read(bytes, block->pointer, block->bytes) != 0)
        road_fail("read", NULL);
    for (size_t i = 0; i < block->bytes; i++) {
        if (bytes[i] != block->value)
            road_fail("contents", "not what was written");
        sum += bytes[i];
    }
    return sum;
}

static unsigned long replace(const struct road *road, struct block *block, unsigned round) {
    unsigned long sum = 0;
    if (block->pointer != 0) {
        sum = check(road, block);
        if (road->release(block->pointer) != 0)
            road_fail("free", NULL);
    }
    block->bytes = 1 + (size_t)round * 7919 % LARGEST;
    block->value = (unsigned char)round;
    if (road->allocate(&block->pointer, block->bytes) != 0 ||
        road->set(block->pointer, block->value, block->bytes) != 0)
        road_fail("allocate", NULL);
    return sum;
}

// On a real device nobody counts driver calls: $ROAD_REPORT, with the process's id behind it, is
// run and tells on standard error how much was pooled.
static void report(void) {
    char line[1024];
    const char *command = getenv("ROAD_REPORT");
    if (!command || !strstr(getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "", "bfcpreload"))
        return;
    snprintf(line, sizeof line, "unset LD_PRELOAD; %s %d >&2", command, (int)getpid());
    if (system(line) != 0)
        road_fail(command, NULL);
}

int road_run(const struct road *road) {
    struct block blocks[KEPT];
    unsigned long sum = 0;
    uint64_t nothing = 0;
    memset(blocks, 0, sizeof blocks);
    for (unsigned round = 0; round < ROUNDS; round++)
        sum += replace(road, &blocks[round % 3 == 0 ? 0 : round % KEPT], round);
    for (size_t i = 0; i < KEPT; i++) {
        sum += check(road, &blocks[i]);
        printf("free %d, again %d\n", road->release(blocks[i].pointer),
               road->release(blocks[i].pointer));
    }
    printf("sum %lu\n", sum);
    printf("too much %d\n", road->allocate(&nothing, SIZE_MAX / 2));
    printf("free of nothing %d\n", road->release(0));
    report();
    return 0;
}
