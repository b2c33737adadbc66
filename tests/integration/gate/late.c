/*
 * How many fences frees in one stream record before and after a plug-in is loaded. With EARLY the
 * program needs the plug-in's code from the start.
 *
 * usage: late PLUGIN
 */
#define ROUTE_DRIVER
#include "tests/conformance/gpu.h"

enum { ROUNDS = 50 };

static void use(const char *what, CUstream stream) {
    unsigned long long (*count)(const char *);
    *(void **)&count = dlsym(RTLD_DEFAULT, "sim_call_count");
    unsigned long long before = count("event_records");
    for (int i = 0; i < ROUNDS; i++) {
        void *block = new_block(KIB);
        fill(stream, block, KIB, 1);
        MUST(release(block));
    }
    printf("%s: %llu\n", what, count("event_records") - before);
}

#ifdef EARLY
extern void *newer_call(void);
#else
static void *newer_call(void) {
    return NULL;
}
#endif

int main(int count, char **arguments) {
    newer_call();
    use_device(0);
    CUstream stream = new_stream();
    use("before", stream);
    if (count < 2 || !dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL))
        return 1;
    use("after", stream);
    return 0;
}
