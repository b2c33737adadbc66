/* Contexts made from green ones: a short list, which most programs never begin. */
#include "interpose/context/green.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "interpose/driver/current.h"

/* Known by its id too, since the handle may be used again after the context's end. */
struct green {
    CUcontext context;
    unsigned long long id;
    struct green *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct green *greens; /* atomic to read; grows only */

static unsigned long long id_of_context(const struct bfc_driver *driver, CUcontext context) {
    unsigned long long id = 0;
    if (!driver->cuCtxGetId || driver->cuCtxGetId(context, &id) != CUDA_SUCCESS)
        return 0;
    return id;
}

static bool is_green(CUcontext context, unsigned long long id) {
    const struct green *green = bfc_load_acquire(&greens);
    while (green && (green->context != context || green->id != id))
        green = green->next;
    return green;
}

void bfc_green_made(const struct bfc_driver *driver, CUcontext context) {
    unsigned long long id = id_of_context(driver, context);
    pthread_mutex_lock(&lock);
    struct green *green = is_green(context, id) ? NULL : malloc(sizeof *green);
    if (green) {
        *green = (struct green){context, id, greens};
        bfc_store_release(&greens, green);
    }
    pthread_mutex_unlock(&lock);
}

CUcontext bfc_green_owner(const struct bfc_driver *driver, CUcontext context) {
    CUdevice device;
    if (!context || !bfc_load_acquire(&greens) ||
        !is_green(context, id_of_context(driver, context)))
        return context;
    if (driver->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return context;
    CUcontext primary = bfc_primary_context(driver, device);
    return primary ? primary : context;
}
