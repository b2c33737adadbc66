// Look-ups of all kinds, their answers and their errors: the same with us and without.
// usage: lookups [PLUGIN...]: first opens these, RTLD_LOCAL, and asks through their own code as
// well.
#include "tests/integration/invisible/ask.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void show_opening(const char *file, int flags) {
    void *handle = dlopen(file, flags);
    const char *error = dlerror();
    printf("dlopen %s %#x: %s, %s\n", file ? file : "NULL", (unsigned)flags,
           handle ? "opened" : "not opened", error ? error : "no error");
}

static void show_openings(void) {
    show_opening(NULL, RTLD_NOW);
    show_opening("libnosuchlibrary.so.1", RTLD_NOW);
    if (!getenv("LOOKUPS_NO_DEEPBIND")) // which the address sanitizer does not bear
        show_opening("libnosuchlibrary.so.1", RTLD_NOW | RTLD_DEEPBIND);
    show_opening("libnosuchlibrary.so.1", RTLD_NOW | RTLD_NOLOAD);
    show_opening("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    show_opening("libc.so.6", 0);
}

// An error waits for dlerror until the next call of the family, and is said once.
static void show_protocol(void) {
    dlsym(RTLD_DEFAULT, "no_such_name");
    dlsym(RTLD_DEFAULT, "malloc");
    printf("after a success: %s\n", dlerror() ? "error" : "no error");
    dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    const char *error = dlerror();
    printf("after a failure: %s\n", error ? error : "no error");
    printf("once more: %s\n", dlerror() ? "error" : "no error");
}

int main(int count, char **arguments) {
    void (*ask)(const char *) = lookups_show;
    for (int i = 1; i < count; i++) {
        void *plugin = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
        printf("%s: %s\n", arguments[i], plugin ? "opened" : dlerror());
        if (plugin)
            *(void **)&ask = dlsym(plugin, "lookups_show");
        if (plugin && ask)
            ask("plug-in");
    }
    lookups_show("program");
    show_openings();
    show_protocol();
    return 0;
}
