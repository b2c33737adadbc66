#include "tests/integration/invisible/ask.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef ASK_LINKED
// So that the linker keeps the driver among what this library needs.
extern int cuInit(unsigned);
int (*lookups_driver)(unsigned) = cuInit;
#endif

static const char *const names[] = {
    "",
    "c",
    "cu",
    "cuMemAlloc",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuGetProcAddress_v2",
    "cuDeviceGet",
    "cuNoSuchCall",
    "cudaMalloc",
    "cudaFree",
    "cudaSetDevice",
    "cudnnCreate",
    "curl_easy_init",
    "malloc",
    "__gmon_start__",
    "no_such_name",
};

// The object, but for our own: whose hook stands for the driver's function.
static const char *place_of(void *address) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    return strcmp(file, "libbfcpreload.so") == 0 ? "libcuda.so.1" : file;
}

static void show(const char *how, const char *name, void *found) {
    const char *error = dlerror();
    printf("%s %s: %s, %s\n", how, name, found ? place_of(found) : "not found",
           error ? error : "no error");
}

// As a runtime's functions are asked for, of which we export some.
static void show_versions(void *process, void *libc, const char *name) {
    static const char *const versions[] = {"libcudart.so.11.0", "libcudart.so.12",
                                           "libcudart.so.13"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        show(versions[i], name, dlvsym(RTLD_DEFAULT, name, versions[i]));
        show("and next", name, dlvsym(RTLD_NEXT, name, versions[i]));
        show("and process", name, dlvsym(process, name, versions[i]));
        show("and libc", name, dlvsym(libc, name, versions[i]));
    }
}

void lookups_show(const char *who) {
    void *process = dlopen(NULL, RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW);
    printf("-- %s\n", who);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        show("default", names[i], dlsym(RTLD_DEFAULT, names[i]));
        show("next", names[i], dlsym(RTLD_NEXT, names[i]));
        show("process", names[i], dlsym(process, names[i]));
        show("libc", names[i], dlsym(libc, names[i]));
        show("versioned", names[i], dlvsym(RTLD_DEFAULT, names[i], "GLIBC_2.2.5"));
        show_versions(process, libc, names[i]);
    }
}
