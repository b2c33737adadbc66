/* cuGetProcAddress: versions, flags, no status, unknown names and the empty one. */
#include "tests/conformance/gpu.h"

typedef CUresult (*look_up_2)(const char *, void **, int, cuuint64_t,
                              CUdriverProcAddressQueryResult *);
static look_up_2 look_up;

static void *found(const char *name, int version, cuuint64_t flags) {
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *entry = NULL, *again = NULL;
    int code = (int)look_up(name, &entry, version, flags, &status);
    printf("\"%s\" at %d with flags %d: %s\n", name, version, (int)flags,
           entry && status == CU_GET_PROC_ADDRESS_SUCCESS ? "found" : "not found");
    printf("~ code %d, status %d\n", code, (int)status);
    code = (int)look_up(name, &again, version, flags, NULL);
    printf("  without a status: %s\n", again == entry ? "the same" : "different");
    printf("~ code %d\n", code);
    return entry;
}

int main(void) {
    CUdeviceptr at = 0;
    MUST(DRIVER(cuInit)(0));
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    look_up = __extension__(look_up_2) dlsym(library, "cuGetProcAddress_v2");
    void *entry = found("cuMemAlloc", 3020, 0);
    tell("it is at 13000 too", found("cuMemAlloc", 13000, 0) == entry);
    tell("and for per-thread streams", found("cuMemAlloc", 3020, 2) == entry);
    tell("at 2000 it is another one", found("cuMemAlloc", 2000, 0) != entry);
    void *release_entry = found("cuMemFree", 3020, 0);
    found("cuMemAlloc_v2", 13000, 0);
    found("cuNoSuchFunction", 13000, 0);
    found("", 0, 0);
    found("cuMem", 13000, 0);
    found("cuMemAllocAsync", 3020, 0);
    found("cuMemFreeAsync", 11020, 0);
    tell("cuMemFreeAsync has a per-thread twin",
         found("cuMemFreeAsync", 11020, 0) != found("cuMemFreeAsync", 11020, 2));
    use_device(0);
    say("malloc by the entry", (int)(__extension__(__typeof__(&cuMemAlloc)) entry)(&at, 4096));
    say("free by the entry", (int)(__extension__(__typeof__(&cuMemFree)) release_entry)(at));
    say("free by the entry again", (int)(__extension__(__typeof__(&cuMemFree)) release_entry)(at));
    return 0;
}
