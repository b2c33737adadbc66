/*
 * Which CUDA runtimes a process has loaded, and which of them a caller of cudaMalloc would be bound
 * to.
 *
 * A walk over the loaded objects finds the runtimes. It is repeated only after objects were loaded
 * or unloaded, and keeps nothing loaded. Thread-safe; none of the library's locks is held across a
 * call of the loader.
 */
#ifndef BFC_INTERPOSE_RUNTIMES_H
#define BFC_INTERPOSE_RUNTIMES_H

#include <stdbool.h>

/* The runtimes whose calls may be answered by the library, by the version of their symbols. From
 * CUDA 12 on, a device's context is current in the driver as soon as cudaSetDevice has returned, so
 * the driver knows which context the runtime would use. CUDA 11's runtime may make the context
 * current later, so the library does not answer its calls. */
#define BFC_RUNTIMES(X)                                                                            \
    X(12, "libcudart.so.12")                                                                       \
    X(13, "libcudart.so.13")

enum bfc_runtime_version {
#define VERSION(number, version) BFC_RUNTIME_##number,
    BFC_RUNTIMES(VERSION)
#undef VERSION
        BFC_RUNTIME_VERSIONS,
};

/* The runtime's calls that the library exports too. All return a cudaError_t. */
enum bfc_runtime_call {
    BFC_CALL_cudaMalloc,
    BFC_CALL_cudaFree,
    BFC_CALL_cudaSetDevice,
    BFC_RUNTIME_CALL_COUNT,
};

/* Names are in arrays, since each pointer would cost every process a relocation at its start. */
extern const char bfc_runtime_versions[BFC_RUNTIME_VERSIONS][16];
extern const char bfc_runtime_names[BFC_RUNTIME_CALL_COUNT][16];

/* The runtimes that are loaded, as one walk over the loaded objects found them. */
struct bfc_runtimes {
    /* how many objects the loader had loaded and unloaded in all before the walk */
    unsigned long long loaded, unloaded;
    struct {
        unsigned count; /* how many runtimes with this symbol version are loaded */
        /* the functions of the first one of these runtimes */
        void *calls[BFC_RUNTIME_CALL_COUNT];
    } of[BFC_RUNTIME_VERSIONS];
    /* whether a library that is no CUDA runtime exports cudaMalloc, as tools that intercept the
     * runtime do */
    bool others;
};
void bfc_runtimes_find(struct bfc_runtimes *runtimes);

/* Whether all callers of this version are bound to the same runtime: exactly one of `version` is
 * loaded, and only CUDA runtimes export cudaMalloc. */
bool bfc_runtimes_sole(const struct bfc_runtimes *runtimes, enum bfc_runtime_version version);

/* The runtime's function that the caller at `address` would be bound to without this library: that
 * of the only loaded runtime of `version`, or else the next one after this library in the caller's
 * scope. NULL: there is none. */
void *bfc_runtimes_call(const struct bfc_runtimes *runtimes, enum bfc_runtime_version version,
                        enum bfc_runtime_call call, const void *address);

#endif
