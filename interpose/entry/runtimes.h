/*
 * Which CUDA runtimes a process has loaded, and which of them a caller of cudaMalloc means.
 *
 * A walk over the loaded objects finds them; it is repeated only after objects were loaded or
 * unloaded. It keeps nothing loaded. Thread-safe; no lock of ours is held across a call of the
 * loader.
 */
#ifndef BFC_INTERPOSE_RUNTIMES_H
#define BFC_INTERPOSE_RUNTIMES_H

#include <stdbool.h>

/*
 * The runtimes by their symbols' version. From CUDA 12 on a device is
 * current in the driver as soon as cudaSetDevice has returned, so the driver knows which context
 * the runtime would use; CUDA 11's runtime may bind it later, and is left alone.
 */
#define BFC_RUNTIMES(X)                                                                            \
    X(12, "libcudart.so.12")                                                                       \
    X(13, "libcudart.so.13")

enum bfc_runtime_version {
#define VERSION(number, version) BFC_RUNTIME_##number,
    BFC_RUNTIMES(VERSION)
#undef VERSION
        BFC_RUNTIME_VERSIONS,
};

/* NAME, parameters: the calls of a runtime that pass through us. All answer with a cudaError_t. */
#define BFC_RUNTIME_CALLS(X)                                                                       \
    X(cudaMalloc, (void **, size_t))                                                               \
    X(cudaFree, (void *))                                                                          \
    X(cudaSetDevice, (int))

enum bfc_runtime_call {
#define CALL(name, parameters) BFC_CALL_##name,
    BFC_RUNTIME_CALLS(CALL)
#undef CALL
        BFC_RUNTIME_CALL_COUNT,
};

/* Their names, in arrays, since each pointer would cost every process a relocation at its start. */
extern const char bfc_runtime_versions[BFC_RUNTIME_VERSIONS][16];
extern const char bfc_runtime_names[BFC_RUNTIME_CALL_COUNT][16];

/* What is loaded. */
struct bfc_runtimes {
    unsigned long long loaded, unloaded; /* the loader's counts of objects, at the walk */
    struct {
        unsigned count;                      /* of the libraries with this version */
        void *calls[BFC_RUNTIME_CALL_COUNT]; /* of the first */
    } of[BFC_RUNTIME_VERSIONS];
    bool others; /* another library has a cudaMalloc, as tools have that stand before a runtime */
};
void bfc_runtimes_find(struct bfc_runtimes *runtimes);

/* Whether it is certain which runtime of `version` a caller means: only one is loaded. */
bool bfc_runtimes_sole(const struct bfc_runtimes *runtimes, enum bfc_runtime_version version);

/*
 * The function that the caller at `address` would be bound to without us: the sole runtime's, or
 * the next one after us in its scope. NULL: there is none.
 */
void *bfc_runtimes_call(const struct bfc_runtimes *runtimes, enum bfc_runtime_version version,
                        enum bfc_runtime_call call, const void *address);

#endif
