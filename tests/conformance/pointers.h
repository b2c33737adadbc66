/* What the cases about pointers share: all attributes of one, by the singular and the plural call.
 */
#ifndef BFC_TESTS_CONFORMANCE_POINTERS_H
#define BFC_TESTS_CONFORMANCE_POINTERS_H

#include "tests/conformance/gpu.h"

struct told {
    CUcontext context;
    CUdeviceptr device_pointer, range_start, mapping_base;
    void *host_pointer;
    unsigned long long id;
    size_t range_size, mapping_size;
    unsigned memory_type;
    int ordinal;
    /* Booleans, of which the header leaves the width open: the driver writes as much as it likes.
     */
    unsigned long long sync_memops, managed, mapped, ipc;
};

/* The attribute, and the field that it goes to. */
#define ATTRIBUTES(X)                                                                              \
    X(CONTEXT, context)                                                                            \
    X(MEMORY_TYPE, memory_type)                                                                    \
    X(DEVICE_POINTER, device_pointer)                                                              \
    X(HOST_POINTER, host_pointer)                                                                  \
    X(SYNC_MEMOPS, sync_memops)                                                                    \
    X(BUFFER_ID, id)                                                                               \
    X(IS_MANAGED, managed)                                                                         \
    X(DEVICE_ORDINAL, ordinal)                                                                     \
    X(IS_LEGACY_CUDA_IPC_CAPABLE, ipc)                                                             \
    X(RANGE_START_ADDR, range_start)                                                               \
    X(RANGE_SIZE, range_size)                                                                      \
    X(MAPPED, mapped)                                                                              \
    X(MAPPING_BASE_ADDR, mapping_base)                                                             \
    X(MAPPING_SIZE, mapping_size)

static UNUSED int ask_all(struct told *told, const void *pointer) {
#define WHICH(attribute, field) CU_POINTER_ATTRIBUTE_##attribute,
    CUpointer_attribute which[] = {ATTRIBUTES(WHICH)};
#undef WHICH
#define WHERE(attribute, field) &told->field,
    void *where[] = {ATTRIBUTES(WHERE)};
#undef WHERE
    unsigned count = sizeof which / sizeof which[0];
    return (int)DRIVER(cuPointerGetAttributes)(count, which, where, address(pointer));
}

static UNUSED int ask(void *data, CUpointer_attribute which, const void *pointer) {
    return (int)DRIVER(cuPointerGetAttribute)(data, which, address(pointer));
}

static UNUSED unsigned long long id_of(const void *pointer) {
    unsigned long long id = 0;
    MUST(ask(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer));
    return id;
}

#endif
