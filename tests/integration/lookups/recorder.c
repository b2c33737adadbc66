// Preloaded before anything else, it writes down what a CUDA runtime asks the driver for and what
// it is given: each dlsym of a "cu" name, each call of cuGetProcAddress in both its forms.
//
// One line each in the file $RECORD_TO: what was asked, the result, the status word, and the
// function that came back, as LIBRARY:SYMBOL.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *(*dlsym_function)(void *, const char *);
typedef int (*old_function)(const char *, void **, int, unsigned long long);
typedef int (*new_function)(const char *, void **, int, unsigned long long, int *);

static old_function next_old;
static new_function next_new;

static dlsym_function next_dlsym(void) {
    static dlsym_function found;
    if (!found)
        *(void **)&found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"); // only for lack of others
    // Ours, if it is there, comes before the C library's and has no version.
    dlsym_function chained = NULL;
    if (found)
        *(void **)&chained = found(RTLD_NEXT, "dlsym");
    return chained ? chained : found;
}

static void name_of(void *function, char *text, size_t size) {
    Dl_info info;
    if (!function) {
        snprintf(text, size, "NULL");
    } else if (!dladdr(function, &info)) {
        snprintf(text, size, "nowhere");
    } else {
        const char *slash = strrchr(info.dli_fname, '/');
        snprintf(text, size, "%s:%s", slash ? slash + 1 : info.dli_fname,
                 info.dli_sname ? info.dli_sname : "?");
    }
}

static void record(const char *line) {
    const char *path = getenv("RECORD_TO");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    fprintf(file, "%s\n", line);
    fclose(file);
}

static void record_call(const char *form, const char *name, int version, unsigned long long flags,
                        int result, const int *status, void *function) {
    char line[512], place[256], word[16] = "none";
    name_of(function, place, sizeof place);
    if (status)
        snprintf(word, sizeof word, "%d", *status);
    snprintf(line, sizeof line, "%s \"%s\" %d %llu result %d status %s -> %s", form,
             name ? name : "NULL", version, flags, result, word, place);
    record(line);
}

static void *wrap(const char *name, int version, void *function);

static int old_wrapper(const char *name, void **entry, int version, unsigned long long flags) {
    int result = next_old(name, entry, version, flags);
    record_call("old", name, version, flags, result, NULL, entry ? *entry : NULL);
    if (result == 0 && name && entry)
        *entry = wrap(name, version, *entry);
    return result;
}

static int new_wrapper(const char *name, void **entry, int version, unsigned long long flags,
                       int *status) {
    int result = next_new(name, entry, version, flags, status);
    record_call("new", name, version, flags, result, status, entry ? *entry : NULL);
    if (result == 0 && name && entry)
        *entry = wrap(name, version, *entry);
    return result;
}

// Version: as for cuGetProcAddress's own entry, 12000 and above means the form with a status word.
static void *wrap(const char *name, int version, void *function) {
    if (!function || strcmp(name, "cuGetProcAddress") != 0)
        return function;
    if (version >= 12000) {
        *(void **)&next_new = function;
        return __extension__(void *) new_wrapper;
    }
    *(void **)&next_old = function;
    return __extension__(void *) old_wrapper;
}

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name) {
    void *found = next_dlsym()(handle, name);
    if (strncmp(name, "cu", 2) != 0 || strncmp(name, "cuda", 4) == 0)
        return found;
    char line[512], place[256];
    name_of(found, place, sizeof place);
    snprintf(line, sizeof line, "dlsym \"%s\" -> %s", name, place);
    record(line);
    if (strcmp(name, "cuGetProcAddress_v2") == 0)
        return wrap("cuGetProcAddress", 12000, found);
    return wrap(name, 11030, found);
}
