/*
 * Domains: the table of living ones, their pools' source, and their end.
 *
 * Locks: `table_lock` guards the list and the sections, and is held across no driver call; the
 * pool's own lock is never held here.
 */
#include "interpose/domain.h"

#include "interpose/bfcpreload.h"
#include "interpose/exports.h"
#include "interpose/green.h"
#include "interpose/marks.h"
#include "interpose/observe.h"
#include "interpose/region_map.h"
#include "interpose/segment.h"
#include "interpose/source.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bfc_domain *living; /* guarded by table_lock; holds one reference to each */

__thread struct bfc_thread_domain bfc_thread_domain __attribute__((tls_model("initial-exec")));

/* ---- references ---- */

static void free_domain(struct bfc_domain *domain) {
    bfc_pool_destroy(domain->pool, false);
    bfc_marks_destroy(domain->marks);
    if (domain->section != &domain->own_section) {
        pthread_mutex_lock(&table_lock);
        bfc_segment_return_section(domain->section);
        pthread_mutex_unlock(&table_lock);
    }
    free(domain);
}

void bfc_domain_drop(struct bfc_domain *domain) {
    if (domain && __atomic_sub_fetch(&domain->references, 1, __ATOMIC_ACQ_REL) == 0)
        free_domain(domain);
}

void bfc_domain_keep(struct bfc_domain *domain) {
    __atomic_add_fetch(&domain->references, 1, __ATOMIC_RELAXED);
}

/* glibc's registry of what runs at a thread's end: unlike a pthread key, it needs no slot. */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library);
/* The compiler's start files, which would define it, are left out (meson.build says why). */
void *__dso_handle __attribute__((weak, visibility("hidden"))) = &__dso_handle;

static void forget_thread(void *unused) {
    (void)unused;
    struct bfc_domain *domain = bfc_thread_domain.domain;
    bfc_thread_domain.domain = NULL;
    bfc_thread_domain.releases_at_exit = false;
    bfc_observe_thread_end();
    bfc_group_end();
    if (bfc_process_if_made())
        bfc_domain_drop(domain);
}

/* Makes `domain`, of which the caller has a reference to give, the thread's last. */
static struct bfc_domain *keep_in_thread(struct bfc_domain *domain) {
    if (!bfc_thread_domain.releases_at_exit)
        bfc_thread_domain.releases_at_exit =
            __cxa_thread_atexit_impl(forget_thread, NULL, &__dso_handle) == 0;
    bfc_domain_drop(bfc_thread_domain.domain);
    bfc_thread_domain.domain = domain;
    return domain;
}

/* ---- the table ---- */

struct bfc_domain *bfc_domain_at(unsigned index) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain *domain = living;
    while (domain && index-- > 0)
        domain = domain->next;
    if (domain)
        __atomic_add_fetch(&domain->references, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&table_lock);
    return domain;
}

/* ---- making a domain ---- */

CUcontext bfc_primary_context(const struct bfc_driver *driver, CUdevice device) {
    unsigned flags;
    int active = 0;
    CUcontext primary = NULL;
    /* Retaining an active context does not create it, and the release undoes it. */
    if (!driver->cuDevicePrimaryCtxGetState || !driver->cuDevicePrimaryCtxRetain ||
        !driver->cuDevicePrimaryCtxRelease_v2 ||
        driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
        driver->cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
        return NULL;
    driver->cuDevicePrimaryCtxRelease_v2(device);
    return primary;
}

/* Asks the driver all that is to be known; no lock is held. */
static bool describe(struct bfc_domain *domain, const struct bfc_driver *driver,
                     const struct bfc_options *options) {
    size_t total;
    if (driver->cuCtxGetDevice(&domain->device) != CUDA_SUCCESS ||
        driver->cuDeviceTotalMem_v2(&total, domain->device) != CUDA_SUCCESS)
        return false;
    domain->device_total = total;
    domain->limit = bfc_amount_bytes(&options->limit, total);
    domain->left_to_others = bfc_amount_bytes(&options->reserve, total);
    domain->bypass_above = options->bypass_above;
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
    if (!domain->section) {
        domain->section = &domain->own_section;
        return;
    }
    domain->segment = bfc_segment_published();
    domain->section_index = bfc_segment_section_index(domain->section);
    domain->event_pool = bfc_event_what(BFC_EVENT_NONE, domain->section_index, 0);
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
    if (driver->can_mark)
        domain->marks = bfc_marks_create();
    domain->free_mode = domain->marks ? process->options.free_mode : BFC_FREE_SYNC;
    if (domain->free_mode != BFC_FREE_ORDERED)
        domain->plain_most = domain->device_total < domain->bypass_above ? domain->device_total
                                                                         : domain->bypass_above;
    if (!bfc_source_make_pool(domain, &process->options)) {
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
    bfc_exports_domain_ended(domain);
    bfc_observe_landmark(domain, BFC_EVENT_END, 0, 0);
    bfc_region_remove_owner(domain);
    bfc_domain_drop(domain);
}

/* Ends the living domain of `context` whose id is `id`, or, if `other`, whose id is not. */
static void end_matching(CUcontext context, unsigned long long id, bool other) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain **link = &living;
    while (*link && ((*link)->context != context || ((*link)->id == id) == other))
        link = &(*link)->next;
    struct bfc_domain *ended = *link ? unlink_domain(link) : NULL;
    pthread_mutex_unlock(&table_lock);
    if (ended)
        end_domain(ended);
}

void bfc_domain_end(CUcontext context, unsigned long long id) {
    end_matching(context, id, false);
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
    else
        bfc_observe_landmark(domain, BFC_EVENT_BEGIN, 0, 0);
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
        if (id) /* the handle of a context that ended unseen was given to this one */
            end_matching(context, id, true);
        bfc_source_open_segment(bfc_process());
        domain = new_domain(driver, context, id);
        domain = domain ? publish(domain, id) : NULL;
    }
    return domain ? keep_in_thread(domain) : NULL;
}

/* ---- finding one ---- */

static bool is_thread_domain(CUcontext context, unsigned long long id) {
    const struct bfc_domain *domain = bfc_thread_domain.domain;
    return domain && domain->context == context && (!id || domain->id == id) &&
           !__atomic_load_n(&domain->ended, __ATOMIC_ACQUIRE);
}

/* The thread's last domain was another: that of the context, or of the one that it is a green part
 * of. */
struct bfc_domain *bfc_domain_switch(const struct bfc_driver *driver, CUcontext context,
                                     unsigned long long id, enum bfc_forward_reason *reason) {
    CUcontext owner = bfc_green_owner(driver, context);
    if (owner != context) {
        if (driver->cuCtxGetId(owner, &id) != CUDA_SUCCESS)
            return NULL;
        if (is_thread_domain(owner, id))
            return bfc_thread_domain.domain;
    }
    *reason = BFC_FORWARD_NO_HOST_MEMORY;
    return switch_domain(driver, owner, id);
}

/* The thread's last domain, if its context is the current one. */
static struct bfc_domain *last_if_current(const struct bfc_driver *driver) {
    CUcontext context = NULL;
    return driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS && is_thread_domain(context, 0)
               ? bfc_thread_domain.domain
               : NULL;
}

/* A context may have ended unseen, and its handle been given to this one. */
static bool is_still_itself(const struct bfc_driver *driver, const struct bfc_domain *domain) {
    unsigned long long id = domain->id;
    return !driver->cuCtxGetId ||
           (driver->cuCtxGetId(domain->context, &id) == CUDA_SUCCESS && id == domain->id);
}

bool bfc_domain_was(unsigned long long id) {
    const struct bfc_domain *domain = bfc_thread_domain.domain;
    return id && domain && domain->id == id && !__atomic_load_n(&domain->ended, __ATOMIC_ACQUIRE);
}

struct bfc_domain *bfc_domain_again(const struct bfc_driver *driver, unsigned long long id) {
    struct bfc_domain *domain = bfc_domain_was(id) ? last_if_current(driver) : NULL;
    return domain && is_still_itself(driver, domain) ? domain : NULL;
}

struct bfc_domain *bfc_domain_again_of(const struct bfc_driver *driver, unsigned long long id,
                                       CUdeviceptr address) {
    return bfc_domain_was(id) && bfc_region_owner(address) == bfc_thread_domain.domain
               ? last_if_current(driver)
               : NULL;
}

unsigned long long bfc_domain_now(const struct bfc_driver *driver) {
    const struct bfc_domain *domain = bfc_thread_domain.domain ? last_if_current(driver) : NULL;
    return domain && is_still_itself(driver, domain) ? domain->id : 0;
}

/* Only a domain that still lives in the table may be referred to anew. */
struct bfc_domain *bfc_domain_take(struct bfc_domain *owner) {
    pthread_mutex_lock(&table_lock);
    struct bfc_domain *domain = living;
    while (domain && domain != owner)
        domain = domain->next;
    if (domain)
        __atomic_add_fetch(&domain->references, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&table_lock);
    return domain ? keep_in_thread(domain) : NULL;
}

struct bfc_domain *bfc_domain_of_context(CUcontext context) {
    return share_living(context, 0);
}
