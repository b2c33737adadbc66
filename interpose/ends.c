/* The ends of contexts. */
#include "interpose/ends.h"

#include "interpose/capture.h"
#include "interpose/domain.h"
#include "interpose/imports.h"
#include "interpose/marks.h"
#include "interpose/peers.h"
#include "interpose/reuse.h"

/* What pools of other contexts know of it: its share in their marks. */
static void forget_marks(CUcontext context) {
    struct bfc_domain *domain;
    for (unsigned i = 0; (domain = bfc_domain_at(i)); i++) {
        if (domain->marks)
            bfc_marks_forget_context(domain->marks, context);
        bfc_domain_drop(domain);
    }
}

/* Its own marks go first: until its domain has ended, somebody may still ask for them. */
static void forget(const struct bfc_driver *driver, CUcontext context, unsigned long long id) {
    forget_marks(context);
    bfc_domain_end(context, id);
    bfc_imports_context_ended(context);
    bfc_peers_forget(context);
    if (bfc_capture_context_ended(context))
        bfc_reuse_after_captures(driver);
}

static unsigned long long id_of(CUcontext context) {
    struct bfc_domain *domain = bfc_domain_of_context(context);
    unsigned long long id = domain ? domain->id : 0;
    bfc_domain_drop(domain);
    return id;
}

CUresult bfc_context_destroy(const struct bfc_driver *driver, CUcontext context,
                             CUresult (*real)(CUcontext)) {
    if (!context || !bfc_process_if_made())
        return real(context);
    unsigned long long id = id_of(context);
    CUresult result = real(context);
    if (result == CUDA_SUCCESS)
        forget(driver, context, id);
    return result;
}

static bool has_ended(const struct bfc_driver *driver, const struct bfc_domain *domain) {
    unsigned long long id;
    return driver->cuCtxGetId &&
           (driver->cuCtxGetId(domain->context, &id) != CUDA_SUCCESS || id != domain->id);
}

/*
 * The device's primary context may have ended, but which one it was could not be found out: looks
 * at all that are known of the device.
 */
static void review(const struct bfc_driver *driver, CUdevice device) {
    struct bfc_domain *domain;
    for (unsigned i = 0; (domain = bfc_domain_at(i)); i++) {
        bool ended = domain->device == device && has_ended(driver, domain);
        if (ended) {
            forget(driver, domain->context, domain->id);
            i--; /* the next one has taken its place */
        }
        bfc_domain_drop(domain);
    }
}

CUresult bfc_primary_reset(const struct bfc_driver *driver, CUdevice device,
                           CUresult (*real)(CUdevice)) {
    CUcontext context = bfc_process_if_made() ? bfc_primary_context(driver, device) : NULL;
    unsigned long long id = context ? id_of(context) : 0;
    CUresult result = real(device);
    if (!context && bfc_process_if_made())
        review(driver, device);
    if (result == CUDA_SUCCESS && context)
        forget(driver, context, id);
    return result;
}

static bool primary_is_active(const struct bfc_driver *driver, CUdevice device) {
    unsigned flags;
    int active = 1;
    return driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active;
}

/* Only the last release ends the context. */
CUresult bfc_primary_release(const struct bfc_driver *driver, CUdevice device,
                             CUresult (*real)(CUdevice)) {
    CUcontext context = bfc_process_if_made() ? bfc_primary_context(driver, device) : NULL;
    unsigned long long id = context ? id_of(context) : 0;
    CUresult result = real(device);
    if (!context && bfc_process_if_made())
        review(driver, device);
    if (result == CUDA_SUCCESS && context && !primary_is_active(driver, device))
        forget(driver, context, id);
    return result;
}
