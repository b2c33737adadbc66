/* The table of known contexts. Threads change it under a lock and read it without one. */
#include "interpose/context/contexts.h"

#include <pthread.h>

#include "base/atomic.h"
#include "interpose/driver/current.h"

enum { MOST = 64, NO_DEVICE = -1 };

/* The known contexts. Threads without the lock read the table by atomic loads. */
static struct known {
    CUcontext context;     /* NULL: the entry is free */
    unsigned long long id; /* the context's id from cuCtxGetId; 0: the driver has no ids */
    /* atomic: how many contexts had been added when this one was, itself included */
    uint64_t number;
    unsigned closers; /* how many threads are about to end the context */
    bool settled;
    CUdevice device; /* the device whose primary context this is, or NO_DEVICE */
} table[MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned high; /* atomic: how many of the table's entries, from its start, were ever used */
unsigned bfc_contexts_known;
bool bfc_contexts_may_hide = true;

static struct known *find_known(CUcontext context) {
    unsigned places = bfc_load_acquire(&high);
    for (unsigned i = 0; i < places; i++)
        if (bfc_load_acquire(&table[i].context) == context)
            return &table[i];
    return NULL;
}

bool bfc_contexts_has(const struct bfc_driver *driver, CUcontext context) {
    const struct known *known = find_known(context);
    return known && bfc_load_acquire(&known->settled) &&
           bfc_handle_of(driver, context, bfc_load_relaxed(&known->id)) == BFC_HANDLE_SAME;
}

/* Removes an entry from the table; does nothing for NULL. The caller holds the lock. */
static void forget_known(struct known *known) {
    if (!known)
        return;
    if (known->device != NO_DEVICE)
        bfc_store_release(&bfc_contexts_may_hide, true);
    bfc_store_release(&known->context, NULL);
    bfc_fetch_sub_seq_cst(&bfc_contexts_known, 1);
}

/* Adds a context, unless it is known already. If the table is full, only the count rises, and it
 * never falls again, so that from then on there are always several contexts. The caller holds the
 * lock. */
static struct known *add_known(CUcontext context, unsigned long long id) {
    static uint64_t added;
    struct known *known = find_known(context);
    if (known && (!id || known->id == id))
        return known;
    /* the entry's context ended by a call without a hook: its handle now means another context */
    if (known)
        forget_known(known);
    bfc_fetch_add_seq_cst(&bfc_contexts_known, 1);
    if (!(known = find_known(NULL))) {
        if (high == MOST)
            return NULL;
        known = &table[high];
    }
    bfc_store_relaxed(&known->settled, false);
    bfc_store_relaxed(&known->closers, 0);
    bfc_store_release(&known->number, ++added);
    bfc_store_relaxed(&known->id, id);
    known->device = NO_DEVICE;
    bfc_store_release(&known->context, context);
    if (known == &table[high])
        bfc_store_release(&high, high + 1);
    return known;
}

void bfc_contexts_settle(CUcontext context) {
    pthread_mutex_lock(&lock);
    struct known *known = find_known(context);
    if (known)
        bfc_store_release(&known->settled, true);
    pthread_mutex_unlock(&lock);
}

void bfc_contexts_add_primary(CUcontext context, CUdevice device) {
    unsigned long long id = bfc_driver() ? bfc_context_id(bfc_driver(), context) : 0;
    pthread_mutex_lock(&lock);
    struct known *known = add_known(context, id);
    if (known && device != NO_DEVICE)
        known->device = device;
    pthread_mutex_unlock(&lock);
}

void bfc_contexts_add(CUcontext context) {
    bfc_contexts_add_primary(context, NO_DEVICE);
}

bool bfc_contexts_forget(CUcontext context, uint64_t number) {
    pthread_mutex_lock(&lock);
    struct known *known = find_known(context);
    bool forgets = !number || (known && known->number == number);
    if (forgets)
        forget_known(known);
    pthread_mutex_unlock(&lock);
    return forgets;
}

static struct known *find_primary(CUdevice device) {
    for (unsigned i = 0; i < high; i++)
        if (table[i].context && table[i].device == device)
            return &table[i];
    return NULL;
}

enum { DEVICES_MOST = 64 };
/* atomic: how often the program has retained each device's primary context, less how often it has
 * released it; never below 0 */
static int retains[DEVICES_MOST];

static bool is_counted(CUdevice device) {
    return device >= 0 && device < DEVICES_MOST;
}

void bfc_contexts_retained(CUdevice device) {
    if (is_counted(device))
        bfc_fetch_add_relaxed(&retains[device], 1);
}

void bfc_contexts_let_go(CUdevice device) {
    int before = is_counted(device) ? bfc_load_relaxed(&retains[device]) : 0;
    while (before > 0 && !bfc_compare_exchange_relaxed(&retains[device], &before, before - 1))
        ;
}

bool bfc_contexts_is_kept(CUdevice device) {
    return is_counted(device) && bfc_load_relaxed(&retains[device]) > 1;
}

uint64_t bfc_contexts_close(CUcontext context) {
    pthread_mutex_lock(&lock);
    struct known *known = context ? find_known(context) : NULL;
    uint64_t number = known ? known->number : 0;
    if (known)
        bfc_fetch_add_relaxed(&known->closers, 1);
    pthread_mutex_unlock(&lock);
    return number;
}

void bfc_contexts_open(CUcontext context, uint64_t number) {
    pthread_mutex_lock(&lock);
    struct known *known = find_known(context);
    if (known && known->number == number)
        bfc_fetch_sub_release(&known->closers, 1);
    pthread_mutex_unlock(&lock);
}

/* Whether the context has ended by a call without a hook: its handle now means another context, or
 * none, although no hook is about to end the context. */
static bool has_ended(const struct bfc_driver *driver, const struct known *known) {
    CUcontext context = bfc_load_acquire(&known->context);
    enum bfc_handle handle =
        context ? bfc_handle_of(driver, context, bfc_load_relaxed(&known->id)) : BFC_HANDLE_SAME;
    return handle == BFC_HANDLE_OTHER ||
           (handle == BFC_HANDLE_DEAD && !bfc_load_acquire(&known->closers));
}

/* The number is read first. So if the entry comes to have another context meanwhile, that context
 * has another number. */
CUcontext bfc_contexts_find_ended(const struct bfc_driver *driver, uint64_t *number) {
    unsigned places = bfc_load_acquire(&high);
    for (unsigned i = 0; i < places; i++) {
        *number = bfc_load_acquire(&table[i].number);
        if (has_ended(driver, &table[i]))
            return bfc_load_acquire(&table[i].context);
    }
    return NULL;
}

/* atomic: the function that does the work of bfc_contexts_review */
static void (*reviewer)(const struct bfc_driver *driver);

void bfc_contexts_set_reviewer(void (*review)(const struct bfc_driver *driver)) {
    bfc_store_release(&reviewer, review);
}

void bfc_contexts_review(const struct bfc_driver *driver) {
    void (*review)(const struct bfc_driver *) = bfc_load_acquire(&reviewer);
    if (review)
        review(driver);
}

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
        bool was_there = bfc_contexts_has(driver, primary);
        bfc_contexts_add_primary(primary, device);
        if (!was_there)
            return primary;
    }
    *unknown = false;
    if (count == 1 && is_primary_known(0))
        bfc_store_release(&bfc_contexts_may_hide, false);
    return NULL;
}
