/*
 * Domains: the table of living ones, their pools' source, and their end.
 *
 * Locks: `table_lock` guards the list and the sections, and is held across no driver call; the
 * pool's own lock is never held here.
 */
#include "interpose/domain.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interpose/region_map.h"
#include "interpose/segment.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bfc_domain *living; /* guarded by table_lock; holds one reference to each */

/* What this thread used last, with a reference held, and why its last growth failed. */
static __thread struct {
    struct bfc_domain *domain;
    CUresult source_error;
    bool releases_at_exit;
} thread __attribute__((tls_model("initial-exec")));

/* ---- references ---- */

static void free_domain(struct bfc_domain *domain) {
    bfc_pool_destroy(domain->pool, false);
    if (domain->section != &domain->own_section) {
        pthread_mutex_lock(&table_lock);
        bfc_segment_return_section(domain->section);
        pthread_mutex_unlock(&table_lock);
    }
    free(domain);
}

static void drop_reference(struct bfc_domain *domain) {
    if (domain && __atomic_sub_fetch(&domain->references, 1, __ATOMIC_ACQ_REL) == 0)
        free_domain(domain);
}

/* glibc's registry of what runs at a thread's end: unlike a pthread key, it needs no slot. */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void forget_thread(void *unused) {
    (void)unused;
    struct bfc_domain *domain = thread.domain;
    thread.domain = NULL;
    thread.releases_at_exit = false;
    if (bfc_process_if_made())
        drop_reference(domain);
}

/* Makes `domain`, of which the caller has a reference to give, the thread's last. */
static struct bfc_domain *keep_in_thread(struct bfc_domain *domain) {
    if (!thread.releases_at_exit)
        thread.releases_at_exit = __cxa_thread_atexit_impl(forget_thread, NULL, &__dso_handle) == 0;
    drop_reference(thread.domain);
    thread.domain = domain;
    return domain;
}

/* ---- the pool's source: the driver ---- */

CUresult bfc_last_source_error(void) {
    return thread.source_error;
}

void bfc_clear_source_error(void) {
    thread.source_error = CUDA_SUCCESS;
}

/* Called in the allocating thread, in which the domain's context is current. */
static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start) {
    struct bfc_domain *domain = context;
    const struct bfc_driver *driver = bfc_driver();
    CUdeviceptr pointer;
    CUresult result = driver->cuMemAlloc_v2(&pointer, bytes);
    if (result == CUDA_SUCCESS && !bfc_region_add(pointer, bytes, domain)) {
        driver->cuMemFree_v2(pointer);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        thread.source_error = result;
        return result == CUDA_ERROR_OUT_OF_MEMORY ? BFC_REFUSED : BFC_FAILED;
    }
    *start = pointer;
    return BFC_RESERVED;
}

/* Possibly from the helper thread, so the context is made current for the call. */
static void release(void *context, bfc_addr start, uint64_t bytes) {
    (void)bytes;
    struct bfc_domain *domain = context;
    const struct bfc_driver *driver = bfc_driver();
    bfc_region_remove(start, domain);
    if (driver->cuCtxPushCurrent_v2(domain->context) != CUDA_SUCCESS)
        return; /* the context has ended, and its memory with it */
    CUcontext popped;
    driver->cuMemFree_v2(start);
    driver->cuCtxPopCurrent_v2(&popped);
}

static uint64_t now(void *context) {
    (void)context;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- trimming, for the helper thread ---- */

static struct bfc_domain *living_at(unsigned index) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain *domain = living;
    while (domain && index-- > 0)
        domain = domain->next;
    if (domain)
        __atomic_add_fetch(&domain->references, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&table_lock);
    return domain;
}

static uint64_t trim_all(uint64_t bytes) {
    uint64_t released = 0;
    struct bfc_domain *domain;
    for (unsigned i = 0; released < bytes && (domain = living_at(i)); i++) {
        released += bfc_pool_trim(domain->pool, bytes - released);
        drop_reference(domain);
    }
    return released;
}

/* ---- making a domain ---- */

static uint64_t bytes_of(const struct bfc_amount *amount, uint64_t total) {
    return amount->fraction > 0 ? (uint64_t)(amount->fraction * (double)total) : amount->bytes;
}

static bool make_pool(struct bfc_domain *domain, const struct bfc_options *options) {
    const struct bfc_source source = {
        .context = domain,
        .reserve = reserve,
        .release = release,
        .now = now,
    };
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.growth = (enum bfc_growth)options->growth;
    config.growth_size = options->growth_size;
    config.growth_max = options->growth_max;
    config.limit = domain->limit;
    config.stats = &domain->section->stats;
    return bfc_pool_create(&domain->pool, &config, &source) == BFC_OK;
}

/* Whether `context` is its device's primary one. Retaining cannot create it: it is active. */
static bool is_primary(const struct bfc_driver *driver, CUdevice device, CUcontext context) {
    unsigned flags;
    int active = 0;
    CUcontext primary = NULL;
    if (!driver->cuDevicePrimaryCtxGetState || !driver->cuDevicePrimaryCtxRetain ||
        !driver->cuDevicePrimaryCtxRelease_v2 ||
        driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
        driver->cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
        return false;
    driver->cuDevicePrimaryCtxRelease_v2(device);
    return primary == context;
}

/* Asks the driver all that is to be known; no lock is held. */
static bool describe(struct bfc_domain *domain, const struct bfc_driver *driver,
                     const struct bfc_options *options) {
    size_t total;
    if (driver->cuCtxGetDevice(&domain->device) != CUDA_SUCCESS ||
        driver->cuDeviceTotalMem_v2(&total, domain->device) != CUDA_SUCCESS)
        return false;
    domain->device_total = total;
    domain->limit = bytes_of(&options->limit, total);
    domain->primary = is_primary(driver, domain->device, domain->context);
    return true;
}

static void fill_section(const struct bfc_domain *domain, const struct bfc_driver *driver) {
    struct bfc_segment_pool *section = domain->section;
    CUuuid uuid = {{0}};
    memset(section, 0, sizeof *section);
    section->device = domain->device;
    section->context_id = domain->id;
    section->device_total = domain->device_total;
    if (driver->cuDeviceGetName)
        driver->cuDeviceGetName(section->device_name, (int)sizeof section->device_name,
                                domain->device);
    if (driver->cuDeviceGetUuid)
        driver->cuDeviceGetUuid(&uuid, domain->device);
    memcpy(section->device_uuid, uuid.bytes, sizeof section->device_uuid);
}

static struct bfc_domain *find_living(CUcontext context, unsigned long long id) {
    for (struct bfc_domain *domain = living; domain; domain = domain->next)
        if (domain->context == context && (!id || domain->id == id))
            return domain;
    return NULL;
}

static void set_state(const struct bfc_domain *domain, enum bfc_pool_state state) {
    __atomic_store_n(&domain->section->state, (uint64_t)state, __ATOMIC_RELEASE);
}

static void take_section(struct bfc_domain *domain) {
    pthread_mutex_lock(&table_lock);
    domain->section = bfc_segment_take_section();
    pthread_mutex_unlock(&table_lock);
    if (!domain->section)
        domain->section = &domain->own_section;
}

/* A new domain that nobody else knows yet, with one reference; NULL without host memory. */
static struct bfc_domain *new_domain(const struct bfc_driver *driver, CUcontext context,
                                     unsigned long long id) {
    static unsigned long long own_ids;
    const struct bfc_process *process = bfc_process();
    struct bfc_domain *domain = process ? calloc(1, sizeof *domain) : NULL;
    if (!domain)
        return NULL;
    domain->references = 1;
    domain->context = context;
    domain->id = id ? id : __atomic_add_fetch(&own_ids, 1, __ATOMIC_RELAXED);
    if (!describe(domain, driver, &process->options)) {
        free(domain);
        return NULL;
    }
    take_section(domain);
    fill_section(domain, driver);
    if (!make_pool(domain, &process->options)) {
        free_domain(domain);
        return NULL;
    }
    return domain;
}

/* Ends the living domain `*link`; the caller has table_lock and gets the table's reference. */
static struct bfc_domain *unlink_domain(struct bfc_domain **link) {
    struct bfc_domain *domain = *link;
    *link = domain->next;
    __atomic_store_n(&domain->ended, true, __ATOMIC_RELEASE);
    set_state(domain, BFC_POOL_ENDED);
    return domain;
}

static void end_domain(struct bfc_domain *domain) {
    bfc_region_remove_owner(domain);
    drop_reference(domain);
}

/* The handle of a context that ended unseen was given to a new one. */
static void end_stale(CUcontext context, unsigned long long id) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain **link = &living;
    while (*link && (*link)->context != context)
        link = &(*link)->next;
    struct bfc_domain *stale = *link && id && (*link)->id != id ? unlink_domain(link) : NULL;
    pthread_mutex_unlock(&table_lock);
    if (stale)
        end_domain(stale);
}

/* Puts `domain` into the table, unless another thread was first: then that one comes back. */
static struct bfc_domain *publish(struct bfc_domain *domain, unsigned long long id) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain *first = find_living(domain->context, id);
    if (!first) {
        domain->next = living;
        living = domain;
        set_state(domain, BFC_POOL_ACTIVE);
    }
    struct bfc_domain *result = first ? first : domain;
    __atomic_add_fetch(&result->references, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&table_lock);
    if (first)
        free_domain(domain);
    return result;
}

static struct bfc_domain *share_living(CUcontext context, unsigned long long id) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain *domain = find_living(context, id);
    if (domain)
        __atomic_add_fetch(&domain->references, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&table_lock);
    return domain;
}

/* Not the thread's last: another one that lives, or a new one. */
static struct bfc_domain *switch_domain(const struct bfc_driver *driver, CUcontext context,
                                        unsigned long long id) {
    struct bfc_domain *domain = share_living(context, id);
    if (!domain) {
        end_stale(context, id);
        bfc_segment_open(bfc_process(), trim_all);
        domain = new_domain(driver, context, id);
        domain = domain ? publish(domain, id) : NULL;
    }
    return domain ? keep_in_thread(domain) : NULL;
}

/* ---- finding one ---- */

static bool is_thread_domain(CUcontext context, unsigned long long id) {
    const struct bfc_domain *domain = thread.domain;
    return domain && domain->context == context && (!id || domain->id == id) &&
           !__atomic_load_n(&domain->ended, __ATOMIC_ACQUIRE);
}

struct bfc_domain *bfc_current_domain(const struct bfc_driver *driver,
                                      enum bfc_forward_reason *reason) {
    CUcontext context = NULL;
    unsigned long long id = 0;
    if (driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context ||
        (driver->cuCtxGetId && driver->cuCtxGetId(context, &id) != CUDA_SUCCESS)) {
        *reason = BFC_FORWARD_NO_CONTEXT;
        return NULL;
    }
    if (is_thread_domain(context, id))
        return thread.domain;
    *reason = BFC_FORWARD_NO_HOST_MEMORY;
    return switch_domain(driver, context, id);
}

struct bfc_domain *bfc_domain_of(CUdeviceptr address) {
    void *owner = bfc_region_owner(address);
    if (!owner || owner == thread.domain)
        return owner;
    /* Only a domain that still lives in the table may be referred to anew. */
    pthread_mutex_lock(&table_lock);
    struct bfc_domain *domain = living;
    while (domain && domain != owner)
        domain = domain->next;
    if (domain)
        __atomic_add_fetch(&domain->references, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&table_lock);
    return domain ? keep_in_thread(domain) : NULL;
}

/* ---- ends ---- */

/* Which domain a call that may end contexts is about: one context's, or a device's primary one. */
struct target {
    CUcontext context; /* or NULL: the primary one of `device` */
    CUdevice device;
};

static bool is_target(const struct bfc_domain *domain, const struct target *target) {
    if (target->context)
        return domain->context == target->context;
    return domain->primary && domain->device == target->device;
}

static struct bfc_domain **link_of_target(const struct target *target) {
    struct bfc_domain **link = &living;
    while (*link && !is_target(*link, target))
        link = &(*link)->next;
    return link;
}

/* Before the real call: its id tells it from one that another thread makes in its place. */
static unsigned long long id_of_target(const struct target *target) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain *domain = *link_of_target(target);
    unsigned long long id = domain ? domain->id : 0;
    pthread_mutex_unlock(&table_lock);
    return id;
}

static void end_target(const struct target *target, unsigned long long id) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain **link = link_of_target(target);
    struct bfc_domain *ended = *link && (*link)->id == id ? unlink_domain(link) : NULL;
    pthread_mutex_unlock(&table_lock);
    if (ended)
        end_domain(ended);
}

CUresult bfc_context_destroy(CUcontext context, CUresult (*real)(CUcontext)) {
    const struct target target = {.context = context};
    if (!context || !bfc_process_if_made())
        return real(context);
    unsigned long long id = id_of_target(&target);
    CUresult result = real(context);
    if (result == CUDA_SUCCESS)
        end_target(&target, id);
    return result;
}

CUresult bfc_primary_reset(CUdevice device, CUresult (*real)(CUdevice)) {
    const struct target target = {.device = device};
    if (!bfc_process_if_made())
        return real(device);
    unsigned long long id = id_of_target(&target);
    CUresult result = real(device);
    if (result == CUDA_SUCCESS)
        end_target(&target, id);
    return result;
}

static bool primary_is_active(const struct bfc_driver *driver, CUdevice device) {
    unsigned flags;
    int active = 1;
    return !driver->cuDevicePrimaryCtxGetState ||
           driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active;
}

CUresult bfc_primary_release(const struct bfc_driver *driver, CUdevice device,
                             CUresult (*real)(CUdevice)) {
    const struct target target = {.device = device};
    if (!bfc_process_if_made())
        return real(device);
    unsigned long long id = id_of_target(&target);
    CUresult result = real(device);
    if (result == CUDA_SUCCESS && !primary_is_active(driver, device))
        end_target(&target, id);
    return result;
}
