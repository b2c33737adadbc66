// A host of plug-ins that knows no CUDA. usage: host PLUGIN WAY [deepbind|global]
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/integration/routes/route.h"

int main(int count, char **arguments) {
    if (count < 3)
        route_fail("usage", "host PLUGIN WAY [deepbind|global]");
    int flags = RTLD_NOW;
    if (count > 3)
        flags |= strcmp(arguments[3], "deepbind") == 0 ? RTLD_DEEPBIND : RTLD_GLOBAL;
    void *plugin = dlopen(arguments[1], flags);
    if (!plugin)
        route_fail(arguments[1], dlerror());
    int (*run)(const char *);
    *(void **)&run = route_find(plugin, "plugin_run");
    return run(arguments[2]);
}
