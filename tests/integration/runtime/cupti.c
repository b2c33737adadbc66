// What CUPTI does when a profiler first wants something of it, and not when it is loaded.
#include <dlfcn.h>
#include <stdio.h>

void plugin_run(const char *who, int pairs, int alone);

void plugin_run(const char *who, int pairs, int alone) {
    (void)pairs, (void)alone;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    printf("%s: the way in for profilers %s\n", who,
           driver && dlsym(driver, "cuGetExportTable") ? "is there" : "is not there");
}
