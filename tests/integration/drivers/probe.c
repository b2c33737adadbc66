// What a libcuda.so.1 without a device answers, in lines to compare; the driver's names on standard
// input.
//   probe names       each name by dlsym and dlvsym, and by both forms of cuGetProcAddress at each
//   version with each flag probe calls       each function with zeros for arguments, before and
//   after a cuInit that fails
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 4096, LENGTH = 96 };

typedef int first_form(const char *, void **, int, unsigned long long);
typedef int second_form(const char *, void **, int, unsigned long long, int *);
typedef int any_call(long, long, long, long, long, long, long, long, long, long, long);

static char names[NAMES][LENGTH];
static size_t count;
static void *driver;

static void read_names(void) {
    while (count < NAMES && scanf("%95s", names[count]) == 1)
        count++;
}

static void *find(const char *name) {
    void *found = dlsym(driver, name);
    if (!found)
        exit(fprintf(stderr, "the driver has no %s\n", name) != 0);
    return found;
}

// The library and the symbol that an address belongs to.
static const char *place(void *address) {
    static char text[256];
    Dl_info info;
    if (!address || !dladdr(address, &info))
        return address ? "elsewhere" : "null";
    const char *file = strrchr(info.dli_fname, '/');
    snprintf(text, sizeof text, "%s:%s", file ? file + 1 : info.dli_fname,
             info.dli_sname && info.dli_saddr == address ? info.dli_sname : "?");
    return text;
}

static void tell_symbol(const char *name) {
    printf("dlsym \"%s\" -> %s\n", name, place(dlsym(driver, name)));
    printf("dlsym default \"%s\" -> %s\n", name, place(dlsym(RTLD_DEFAULT, name)));
}

static sigjmp_buf back;

static void on_fault(int signal) {
    siglongjmp(back, signal);
}

static first_form *first;
static second_form *second;

// Without a place for the pointer: some of NVIDIA's drivers fault on it.
static void ask_without_pointer(const char *name, int version, unsigned long long flags) {
    int status = -1;
    if (sigsetjmp(back, 1))
        printf("old \"%s\" %d %llx without pointer faults -> null\n", name, version, flags);
    else
        printf("old \"%s\" %d %llx without pointer = %d -> null\n", name, version, flags,
               first(name, NULL, version, flags));
    if (sigsetjmp(back, 1))
        printf("new \"%s\" %d %llx without pointer faults -> null\n", name, version, flags);
    else
        printf("new \"%s\" %d %llx without pointer = %d -> null\n", name, version, flags,
               second(name, NULL, version, flags, &status));
}

static void ask(const char *name, int version, unsigned long long flags) {
    void *a = NULL, *b = NULL, *c = NULL;
    int status = -1;
    int result = first(name, &a, version, flags);
    printf("old \"%s\" %d %llx = %d -> %s\n", name, version, flags, result, place(a));
    result = second(name, &b, version, flags, &status);
    printf("new \"%s\" %d %llx = %d, status %d -> %s\n", name, version, flags, result, status,
           place(b));
    result = second(name, &c, version, flags, NULL);
    printf("new \"%s\" %d %llx without status = %d -> %s\n", name, version, flags, result,
           place(c));
}

static void tell_names(void) {
    static const int versions[] = {11030, 11040, 11050, 11060, 11070, 11080, 12000, 12010, 12020,
                                   12030, 12040, 12050, 12060, 12080, 12090, 13000, 0,     -1};
    static const unsigned long long flags[] = {0, 1, 2, 3, 4};
    *(void **)&first = find("cuGetProcAddress");
    *(void **)&second = find("cuGetProcAddress_v2");
    for (size_t i = 0; i < count; i++) {
        tell_symbol(names[i]);
        ask_without_pointer(names[i], 12000, 0);
        for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
            for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
                ask(names[i], versions[v], flags[f]);
    }
    ask("", 12000, 0);
    ask("cuNoSuchName", 12000, 0);
}

// ---- calls ----

// Zeros for arguments: natively some calls fault on them.
static void tell_call(const char *when, const char *name) {
    any_call *call;
    *(void **)&call = dlsym(driver, name);
    if (!call)
        return;
    if (sigsetjmp(back, 1))
        printf("%s %s faults\n", when, name);
    else
        printf("%s %s %d\n", when, name, call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    fflush(stdout);
}

static void tell_calls(void) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], "cuInit") != 0)
            tell_call("before", names[i]);
    tell_call("first", "cuInit");
    for (size_t i = 0; i < count; i++)
        tell_call("after", names[i]);
}

int main(int arguments, char **argument) {
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    read_names();
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    if (arguments == 2 && strcmp(argument[1], "names") == 0)
        return tell_names(), 0;
    if (arguments == 2 && strcmp(argument[1], "calls") == 0)
        return tell_calls(), 0;
    return fprintf(stderr, "usage: probe names|calls, names on standard input\n"), 2;
}
