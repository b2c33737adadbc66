/* A made-up device whose addresses and memory are apart. */
#include "tests/unit/pool/fake_pages.h"

#include <stddef.h>

#define FIRST UINT64_C(0x7f0000000000)

static void wrong(struct fake_pages *fake, const char *fault) {
    if (!fake->fault)
        fake->fault = fault;
}

static bool refused(struct fake_pages *fake, enum page_call call) {
    unsigned made = ++fake->made[call], at = fake->refuse_at[call];
    if (fake->meanwhile)
        fake->meanwhile(fake->user, call);
    return made == at || (fake->refuse_on && at && made > at);
}

static bool is_round(const struct fake_pages *fake, uint64_t value) {
    return value % fake->calls.granule == 0;
}

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start) {
    struct fake_pages *fake = context;
    if (refused(fake, PAGE_RESERVE))
        return fake->fail ? BFC_FAILED : BFC_REFUSED;
    if (!bytes || !is_round(fake, bytes))
        wrong(fake, "addresses were reserved that are not whole granules");
    *start = fake->next;
    fake->next += bytes + fake->calls.granule;
    fake->reserved += bytes;
    return BFC_RESERVED;
}

static void unreserve(void *context, bfc_addr start, uint64_t bytes) {
    struct fake_pages *fake = context;
    for (bfc_page p = 1; p <= fake->named; p++)
        if (fake->pages[p].start >= start && fake->pages[p].start < start + bytes)
            wrong(fake, "addresses were given back that have a page");
    fake->reserved -= bytes;
}

/* A name that no page has; 0: there is none. */
static bfc_page new_name(struct fake_pages *fake) {
    for (bfc_page p = 1; p <= fake->named; p++)
        if (!fake->pages[p].bytes)
            return p;
    return fake->named + 1 < FAKE_PAGES ? ++fake->named : 0;
}

static enum bfc_reserve_result create(void *context, uint64_t bytes, bfc_page *page,
                                      struct bfc_ask *ask) {
    (void)ask;
    struct fake_pages *fake = context;
    bool fits = bytes <= fake->capacity - fake->taken;
    bfc_page name = new_name(fake);
    if (refused(fake, PAGE_CREATE))
        return fake->fail ? BFC_FAILED : BFC_REFUSED;
    if (!fits || !name)
        return BFC_REFUSED;
    if (!bytes || !is_round(fake, bytes))
        wrong(fake, "a page was made that is not whole granules");
    fake->taken += bytes;
    *page = name;
    fake->pages[*page] = (struct fake_page){.bytes = bytes};
    return BFC_RESERVED;
}

static struct fake_page *find(struct fake_pages *fake, bfc_page page, uint64_t bytes) {
    if (page && page <= fake->named && fake->pages[page].bytes == bytes)
        return &fake->pages[page];
    wrong(fake, "there is no such page");
    return NULL;
}

static void release(void *context, bfc_page page, uint64_t bytes) {
    struct fake_pages *fake = context;
    struct fake_page *at = find(fake, page, bytes);
    if (!at)
        return;
    if (at->start)
        wrong(fake, "a page was given back that is mapped");
    fake->taken -= bytes;
    *at = (struct fake_page){.bytes = 0};
}

static bool map(void *context, bfc_addr start, uint64_t bytes, bfc_page page) {
    struct fake_pages *fake = context;
    if (fake->unwanted)
        wrong(fake, "a page was mapped while none is wanted");
    if (refused(fake, PAGE_MAP))
        return false;
    struct fake_page *at = find(fake, page, bytes);
    if (!at)
        return false;
    for (bfc_page p = 1; p <= fake->named; p++)
        if (fake->pages[p].start && fake->pages[p].start < start + bytes &&
            start < fake->pages[p].start + fake->pages[p].bytes)
            wrong(fake, "two pages are behind one address");
    if (at->start)
        wrong(fake, "a page was mapped twice");
    *at = (struct fake_page){.bytes = bytes, .start = start};
    return true;
}

static bool unmap(void *context, bfc_addr start, uint64_t bytes) {
    struct fake_pages *fake = context;
    uint64_t found = 0;
    if (refused(fake, PAGE_UNMAP))
        return false;
    if (fake->in_use && fake->in_use(fake->user, start, bytes))
        wrong(fake, "memory was unmapped that is in use");
    for (bfc_page p = 1; p <= fake->named; p++) {
        struct fake_page *at = &fake->pages[p];
        if (!at->start || at->start < start || at->start >= start + bytes)
            continue;
        if (at->region)
            wrong(fake, "plain memory was unmapped");
        found += at->bytes;
        at->start = 0;
        at->allowed = false;
    }
    if (found != bytes || !bytes)
        wrong(fake, "what was unmapped are not whole pages, or none");
    return true;
}

static bool allow(void *context, bfc_addr start, uint64_t bytes) {
    struct fake_pages *fake = context;
    uint64_t found = 0;
    if (refused(fake, PAGE_ALLOW))
        return false;
    for (bfc_page p = 1; p <= fake->named; p++) {
        struct fake_page *at = &fake->pages[p];
        if (!at->start || at->start < start || at->start >= start + bytes)
            continue;
        found += at->bytes;
        at->allowed = true;
    }
    if (found != bytes || !bytes)
        wrong(fake, "access was given to addresses without pages, or to none");
    return true;
}

/* ---- plain regions ---- */

enum bfc_reserve_result fake_pages_reserve_region(void *context, uint64_t bytes, bfc_addr *start,
                                                  struct bfc_ask *ask) {
    (void)ask;
    struct fake_pages *fake = context;
    bool fits = bytes <= fake->capacity - fake->taken;
    bfc_page name = fits ? new_name(fake) : 0;
    if (!name)
        return BFC_REFUSED;
    *start = fake->next;
    fake->next += (bytes / fake->calls.granule + 2) * fake->calls.granule;
    fake->taken += bytes;
    fake->pages[name] =
        (struct fake_page){.bytes = bytes, .start = *start, .allowed = true, .region = true};
    return BFC_RESERVED;
}

bool fake_pages_release_region(void *context, bfc_addr start, uint64_t bytes, int *error) {
    (void)error;
    struct fake_pages *fake = context;
    for (bfc_page p = 1; p <= fake->named; p++)
        if (fake->pages[p].region && fake->pages[p].start == start &&
            fake->pages[p].bytes == bytes) {
            fake->taken -= bytes;
            fake->pages[p] = (struct fake_page){.bytes = 0};
            return true;
        }
    wrong(fake, "a region was given back that there is not");
    return true;
}

uint64_t fake_pages_in_regions(const struct fake_pages *fake) {
    uint64_t bytes = 0;
    for (bfc_page p = 1; p <= fake->named; p++)
        bytes += fake->pages[p].region ? fake->pages[p].bytes : 0;
    return bytes;
}

bool fake_pages_is_in_region(const struct fake_pages *fake, bfc_addr address) {
    for (bfc_page p = 1; p <= fake->named; p++)
        if (fake->pages[p].region && address - fake->pages[p].start < fake->pages[p].bytes)
            return true;
    return false;
}

static bool wants_pages(void *context) {
    return !((struct fake_pages *)context)->unwanted;
}

void fake_pages_init(struct fake_pages *fake, uint64_t granule, uint64_t capacity) {
    *fake = (struct fake_pages){.calls = {.granule = granule,
                                          .addresses = 4 * capacity,
                                          .reserve = reserve,
                                          .unreserve = unreserve,
                                          .create = create,
                                          .release = release,
                                          .map = map,
                                          .unmap = unmap,
                                          .allow = allow,
                                          .may_remake = wants_pages,
                                          .may_grow = wants_pages},
                                .capacity = capacity,
                                .next = FIRST};
}

bool fake_pages_backs(const struct fake_pages *fake, bfc_addr start, uint64_t bytes) {
    uint64_t found = 0;
    for (bfc_page p = 1; p <= fake->named; p++) {
        const struct fake_page *at = &fake->pages[p];
        if (!at->start || !at->allowed)
            continue;
        bfc_addr from = at->start > start ? at->start : start;
        bfc_addr to = at->start + at->bytes < start + bytes ? at->start + at->bytes : start + bytes;
        found += to > from ? to - from : 0;
    }
    return found == bytes;
}

bool fake_pages_is_clean(const struct fake_pages *fake) {
    return fake->taken == 0 && fake->reserved == 0;
}
