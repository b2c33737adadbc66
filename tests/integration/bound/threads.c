// Threads that open the driver, and what is linked to it, at the same time: whoever is first, each
// gets the same address of a function. In a fresh process every time. usage: threads PLUGIN
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/routes/route.h"

enum { PROCESSES = 40, THREADS = 8 };

static const char *plugin_path;
static pthread_barrier_t together;

static void *by_name(void *found) {
    pthread_barrier_wait(&together);
    *(void **)found = route_find(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL), "cuMemFree_v2");
    return NULL;
}

static void *by_link(void *found) {
    pthread_barrier_wait(&together);
    void *plugin = dlopen(plugin_path, RTLD_LAZY | RTLD_LOCAL);
    if (!plugin)
        route_fail(plugin_path, dlerror());
    const struct route *table = route_find(plugin, "bound_constants");
    *(int (**)(uint64_t))found = table->release;
    return NULL;
}

static int run_threads(void) {
    pthread_t threads[THREADS];
    void *found[THREADS];
    int same = 0;
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, i % 2 ? by_link : by_name, &found[i]) != 0)
            route_fail("pthread_create", NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        same += found[i] == found[0];
    return same == THREADS ? 0 : 1;
}

int main(int count, char **arguments) {
    int failed = 0;
    plugin_path = count > 1 ? arguments[1] : "";
    for (int i = 0; i < PROCESSES; i++) {
        int status = 1;
        pid_t child = fork();
        if (child == 0)
            _exit(run_threads());
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    printf("%d of %d processes failed\n", failed, PROCESSES);
    return failed != 0;
}
