/* A list of the contexts that were made from green contexts; in most programs it is empty. */
#include "interpose/context/green.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "interpose/driver/current.h"

/* A context that was made from a green one. It is identified by its id too, because the driver may
 * use the handle again after the context's end. */
struct green {
    CUcontext context;     /* atomic; the handle */
    unsigned long long id; /* atomic; the context's id from cuCtxGetId */
    struct green *next;
};

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* the list, read atomically; entries are never removed, but that of an ended context is reused */
static struct green *greens;

static bool is_green(CUcontext context, unsigned long long id) {
    const struct green *green = bfc_load_acquire(&greens);
    while (green &&
           (bfc_load_relaxed(&green->context) != context || bfc_load_relaxed(&green->id) != id))
        green = green->next;
    return green;
}

/* Returns an entry that may be overwritten, since its context has ended, or a new one; NULL: the
 * host has no memory. */
static struct green *find_room(const struct bfc_driver *driver) {
    struct green *green = greens;
    while (green && bfc_context_id(driver, green->context) == green->id)
        green = green->next;
    if (green)
        return green;
    green = calloc(1, sizeof *green);
    if (green) {
        green->next = greens;
        bfc_store_release(&greens, green);
    }
    return green;
}

void bfc_green_made(const struct bfc_driver *driver, CUcontext context) {
    unsigned long long id = bfc_context_id(driver, context);
    pthread_mutex_lock(&lock);
    struct green *green = is_green(context, id) ? NULL : find_room(driver);
    /* an entry that is used again can be overwritten: no thread looks for its old context, which
     * has ended, nor for the new one, whose handle the program does not have yet */
    if (green) {
        bfc_store_relaxed(&green->context, context);
        bfc_store_relaxed(&green->id, id);
    }
    pthread_mutex_unlock(&lock);
}

CUcontext bfc_green_owner(const struct bfc_driver *driver, CUcontext context) {
    CUdevice device;
    if (!context || !bfc_load_acquire(&greens) ||
        !is_green(context, bfc_context_id(driver, context)))
        return context;
    if (driver->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return context;
    CUcontext primary = bfc_primary_context(driver, device);
    return primary ? primary : context;
}
