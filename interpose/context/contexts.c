/* Known contexts: a short table, changed under a lock and read without one. */
#include "interpose/context/contexts.h"

#include <pthread.h>

#include "base/atomic.h"
#include "interpose/driver/current.h"

enum { MOST = 64, NO_DEVICE = -1 };

/* Read without the lock: by atomic loads. */
static struct known {
    CUcontext context; /* NULL: a free place */
    bool settled;
    CUdevice device; /* whose primary context it is known to be, or NO_DEVICE */
} table[MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned high; /* atomic: places that were ever taken */
unsigned bfc_contexts_known;
bool bfc_contexts_may_hide = true;

static struct known *find_known(CUcontext context) {
    unsigned places = bfc_load_acquire(&high);
    for (unsigned i = 0; i < places; i++)
        if (bfc_load_acquire(&table[i].context) == context)
            return &table[i];
    return NULL;
}

bool bfc_contexts_has(CUcontext context) {
    const struct known *known = find_known(context);
    return known && bfc_load_acquire(&known->settled);
}

/*
 * If the table is full, the context is counted but never forgotten: from then on there are several
 * contexts, whichever end.
 */
static struct known *add_known(CUcontext context) {
    struct known *known = find_known(context);
    if (known)
        return known;
    bfc_fetch_add_seq_cst(&bfc_contexts_known, 1);
    if (!(known = find_known(NULL))) {
        if (high == MOST)
            return NULL;
        known = &table[high];
    }
    known->settled = false;
    known->device = NO_DEVICE;
    bfc_store_release(&known->context, context);
    if (known == &table[high])
        bfc_store_release(&high, high + 1);
    return known;
}

void bfc_contexts_add(CUcontext context) {
    pthread_mutex_lock(&lock);
    add_known(context);
    pthread_mutex_unlock(&lock);
}

void bfc_contexts_settle(CUcontext context) {
    pthread_mutex_lock(&lock);
    struct known *known = find_known(context);
    if (known)
        bfc_store_release(&known->settled, true);
    pthread_mutex_unlock(&lock);
}

void bfc_contexts_add_primary(CUcontext context, CUdevice device) {
    pthread_mutex_lock(&lock);
    struct known *known = add_known(context);
    if (known)
        known->device = device;
    pthread_mutex_unlock(&lock);
}

/* Under the lock; NULL: there was none. */
static void forget_known(struct known *known) {
    if (!known)
        return;
    if (known->device != NO_DEVICE)
        bfc_store_release(&bfc_contexts_may_hide, true);
    bfc_store_release(&known->context, NULL);
    bfc_fetch_sub_seq_cst(&bfc_contexts_known, 1);
}

void bfc_contexts_forget(CUcontext context) {
    pthread_mutex_lock(&lock);
    forget_known(find_known(context));
    pthread_mutex_unlock(&lock);
}

static struct known *find_primary(CUdevice device) {
    for (unsigned i = 0; i < high; i++)
        if (table[i].context && table[i].device == device)
            return &table[i];
    return NULL;
}

void bfc_contexts_forget_primary(CUdevice device) {
    pthread_mutex_lock(&lock);
    forget_known(find_primary(device));
    pthread_mutex_unlock(&lock);
}

/* ---- what no hook saw ---- */

static bool is_primary_known(CUdevice device) {
    pthread_mutex_lock(&lock);
    bool known = find_primary(device);
    pthread_mutex_unlock(&lock);
    return known;
}

CUcontext bfc_contexts_search(const struct bfc_driver *driver, bool *unknown) {
    int count = 0, active;
    unsigned flags;
    *unknown = true;
    if (!driver->cuDeviceGetCount || !driver->cuDevicePrimaryCtxGetState ||
        driver->cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return NULL;
    for (CUdevice device = 0; device < count; device++) {
        if (is_primary_known(device))
            continue;
        if (driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS)
            return NULL;
        CUcontext primary = active ? bfc_primary_context(driver, device) : NULL;
        if (!primary)
            continue;
        bool was_there = bfc_contexts_has(primary);
        bfc_contexts_add_primary(primary, device);
        if (!was_there)
            return primary;
    }
    *unknown = false;
    if (count == 1 && is_primary_known(0))
        bfc_store_release(&bfc_contexts_may_hide, false);
    return NULL;
}
