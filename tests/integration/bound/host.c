// A host that opens a plug-in which is linked to the driver, and its driver first or not; the
// loader binds lazily or at once. usage: host PLUGIN WAY FLAG..., a flag being lazy, global,
// deepbind or driver
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/integration/routes/route.h"

static int has(int count, char **arguments, const char *flag) {
    for (int i = 3; i < count; i++)
        if (strcmp(arguments[i], flag) == 0)
            return 1;
    return 0;
}

int main(int count, char **arguments) {
    if (count < 3)
        route_fail("usage", "host PLUGIN WAY FLAG...");
    if (has(count, arguments, "driver")) {
        void *libcuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        if (!libcuda || !dlsym(libcuda, "cuInit"))
            route_fail("libcuda.so.1", dlerror());
    }
    void *plugin =
        dlopen(arguments[1], (has(count, arguments, "lazy") ? RTLD_LAZY : RTLD_NOW) |
                                 (has(count, arguments, "global") ? RTLD_GLOBAL : RTLD_LOCAL) |
                                 (has(count, arguments, "deepbind") ? RTLD_DEEPBIND : 0));
    if (!plugin)
        route_fail(arguments[1], dlerror());
    int (*run)(const char *);
    *(void **)&run = route_find(plugin, "plugin_run");
    return run(arguments[2]);
}
