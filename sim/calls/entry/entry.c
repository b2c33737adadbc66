// The table of entry points that cuGetProcAddress serves, in both its forms.
//
// For a name the newest symbol that is not newer than the version asked for, nor than the driver.
// With CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM its per-thread twin where there is one. All
// that a driver of 13.0 has is here; what is not modelled is in unmodelled.c.
#include "sim/base/options.h"
#include "sim/border/border.h"
#include "sim/calls/streams/newer.h"

#include <string.h>

struct entry {
    const char *name;
    int version, twin_version;
    void (*symbol)(void), (*twin)(void);
};

#define SIM_ENTRY(name, version, symbol) int CUDAAPI symbol(void);
#define SIM_TWIN(name, version, symbol, twin_version, twin)                                        \
    int CUDAAPI symbol(void);                                                                      \
    int CUDAAPI twin(void);
#include "sim/calls/entry/foreign.inc"
#undef SIM_ENTRY
#undef SIM_TWIN

static const struct entry entries[] = {
#define SIM_ENTRY(name, version, symbol) {#name, version, 0, (void (*)(void))symbol, NULL},
#define SIM_TWIN(name, version, symbol, twin_version, twin)                                        \
    {#name, version, twin_version, (void (*)(void))symbol, (void (*)(void))twin},
#include "sim/calls/entry/entries.inc"
#include "sim/calls/entry/foreign.inc"
#undef SIM_ENTRY
#undef SIM_TWIN
};

static void (*symbol_of(const struct entry *entry, int version, bool per_thread))(void) {
    bool twin = per_thread && entry->twin != NULL && entry->twin_version <= version;
    return twin ? entry->twin : entry->symbol;
}

// The driver's own function, past the symbol table, which a library may have redirected.
__attribute__((visibility("default"))) void (*sim_private_entry(const char *name))(void);
void (*sim_private_entry(const char *name))(void) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strcmp(entries[i].name, name) == 0) {
            return entries[i].symbol;
        }
    }
    return NULL;
}

static CUdriverProcAddressQueryResult find(const char *name, int version, bool per_thread,
                                           void **out) {
    bool known = false;
    void (*symbol)(void) = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *entry = &entries[i];
        if (strcmp(entry->name, name) != 0 || entry->version > sim_options.driver_version) {
            continue;
        }
        known = true;
        if (entry->version <= version) { // they are sorted by version
            symbol = symbol_of(entry, version, per_thread);
        }
    }
    memcpy(out, &symbol, sizeof symbol);
    if (symbol != NULL) {
        return CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

static CUresult look_up(const char *name, void **out, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    const cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (name == NULL || out == NULL || (flags & ~known) != 0 || flags == known) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUdriverProcAddressQueryResult found =
        find(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, out);
    if (status != NULL) {
        *status = found;
    }
    return found == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SIM_CALL(cuGetProcAddress, SIM_UNCOUNTED | SIM_IN_CALLBACK,
         (const char *name, void **out, int version, cuuint64_t flags),
         look_up(name, out, version, flags, NULL))
SIM_CALL(cuGetProcAddress_v2, SIM_UNCOUNTED | SIM_IN_CALLBACK,
         (const char *name, void **out, int version, cuuint64_t flags,
          CUdriverProcAddressQueryResult *status),
         look_up(name, out, version, flags, status))
