#include "tools/bfcstat/snapshot/write_snapshot.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/snapshot/snapshot.h"

static const struct bfc_segment_pool *section_of(const struct moment *m, uint64_t pool) {
    return pool < BFC_SEGMENT_POOLS ? &m->job->pools[pool] : NULL;
}

/* Returns the number of the device on which the pool allocates, as the job counts devices; -1:
 * there is no such pool, or it is of host memory. */
static int64_t device_of(const struct moment *m, uint64_t pool) {
    const struct bfc_segment_pool *section = section_of(m, pool);
    bool counts = section && section->state != BFC_POOL_UNUSED && !bfc_pool_is_host(section) &&
                  section->device >= 0 && section->device < BFC_SEGMENT_POOLS;
    return counts ? section->device : -1;
}

static unsigned count_devices(const struct moment *m) {
    int64_t last = -1;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        last = device_of(m, i) > last ? device_of(m, i) : last;
    return (unsigned)(last + 1);
}

struct writing {
    struct moment *moment;
    struct pickle pickle;
    /* For each site (call stack): the number by which the pickle refers to the site's list of
     * frames, plus 1; 0: the frames are not written yet. */
    uint32_t *noted;
    struct bfc_who_mark *living; /* call stacks of blocks in use, sorted by the blocks' ids */
};

static const char *why_no_stack(const struct moment *m) {
    static const char *const reasons[] = {"no stack: the job runs with BFC_STACKS=off",
                                          "no sample was taken here: BFC_STACKS=all takes all",
                                          "its stack is not kept any more"};
    return reasons[m->who->header.stacks < 2 ? m->who->header.stacks : 2];
}

static void put_line(struct pickle *p, struct pickle_list *frames, const struct who_line *line) {
    char name[64];
    snprintf(name, sizeof name, "0x%" PRIx64, line->place);
    snapshot_put_frame(p, frames, line->function ? line->function : name,
                       line->source ? line->source : line->object, line->line);
}

/* Writes the call stack of a site (0: not known) as a list of frames. The tag, which says what the
 * thread was doing, becomes the outermost frame. */
static void put_stack(struct writing *w, uint32_t site) {
    struct who_names *names = &w->moment->names;
    const struct bfc_who_site *at = &w->moment->who->sites[site];
    struct pickle_list frames = pickle_list(&w->pickle);
    struct who_line lines[WHO_LINES];
    size_t count = site ? who_stack(names, at, lines, WHO_LINES) : 0;
    for (size_t i = 0; i < count; i++)
        put_line(&w->pickle, &frames, &lines[i]);
    if (!count)
        snapshot_put_frame(&w->pickle, &frames, why_no_stack(w->moment), "", 0);
    if (site && *who_tag(names, at))
        snapshot_put_frame(&w->pickle, &frames, who_tag(names, at), "tag", 0);
    pickle_list_end(&w->pickle, &frames);
}

/* Writes the frames of a site (call stack), or a reference to them if they are written already. */
static void put_frames(struct writing *w, uint32_t site) {
    if (w->noted[site]) {
        pickle_again(&w->pickle, w->noted[site] - 1);
        return;
    }
    put_stack(w, site);
    w->noted[site] = pickle_note(&w->pickle) + 1;
}

static int by_id(const void *left, const void *right) {
    uint64_t a = ((const struct bfc_who_mark *)left)->of;
    uint64_t b = ((const struct bfc_who_mark *)right)->of;
    return a < b ? -1 : a > b;
}

static uint32_t site_of(const struct writing *w, const struct bfc_who_block *block) {
    const struct bfc_who_mark key = {.of = block->id};
    const struct bfc_who_mark *mark =
        bsearch(&key, w->living, w->moment->who->header.living, sizeof key, by_id);
    return mark ? (uint32_t)mark->site : 0;
}

static void put_block(struct writing *w, const struct bfc_who_block *block) {
    bool in_use = block->state == BFC_WHO_IN_USE;
    snapshot_begin_block(&w->pickle,
                         &(struct snapshot_block){.address = block->start,
                                                  .size = block->size,
                                                  .requested = block->requested,
                                                  .state = in_use ? SNAPSHOT_ALLOCATED
                                                           : block->state == BFC_WHO_PENDING
                                                               ? SNAPSHOT_PENDING
                                                               : SNAPSHOT_INACTIVE});
    if (in_use)
        put_frames(w, site_of(w, block));
    else
        snapshot_put_no_frames(&w->pickle);
    pickle_dict_end(&w->pickle);
}

/* Writes `count` adjacent blocks, all with memory behind their addresses, as one segment. In
 * PyTorch's snapshots a segment is a range of device memory. */
static void put_segment(struct writing *w, const struct bfc_who_region *region,
                        const struct bfc_who_block *blocks, size_t count) {
    struct snapshot_segment segment = {.device = (uint32_t)device_of(w->moment, region->pool),
                                       .address = blocks[0].start,
                                       .expandable = region->paged};
    for (size_t i = 0; i < count; i++) {
        segment.size += blocks[i].size;
        segment.requested += blocks[i].requested;
        segment.allocated += blocks[i].state == BFC_WHO_IN_USE ? blocks[i].size : 0;
        segment.active += blocks[i].state != BFC_WHO_READY ? blocks[i].size : 0;
    }
    snapshot_begin_segment(&w->pickle, &segment);
    struct pickle_list list = pickle_list(&w->pickle);
    for (size_t i = 0; i < count; i++) {
        pickle_item(&w->pickle, &list);
        put_block(w, &blocks[i]);
    }
    pickle_list_end(&w->pickle, &list);
    pickle_dict_end(&w->pickle);
}

/* Writes a region (memory that the pool took from the driver with one call) as a segment of
 * PyTorch's snapshots. If the region has pages, some of its addresses may have no memory behind
 * them; then each range between such addresses is written as a segment. */
static void put_region(struct writing *w, struct pickle_list *segments,
                       const struct bfc_who_region *region) {
    const struct bfc_who_block *blocks = w->moment->who->blocks + region->first;
    size_t count = 0;
    for (size_t i = 0; i < region->blocks; i += count + 1) {
        for (count = 0; i + count < region->blocks; count++)
            if (blocks[i + count].state == BFC_WHO_BARE)
                break;
        if (!count)
            continue;
        pickle_item(&w->pickle, segments);
        put_segment(w, region, &blocks[i], count);
    }
}

static void put_segments(struct writing *w) {
    const struct bfc_who *who = w->moment->who;
    pickle_word(&w->pickle, "segments");
    struct pickle_list segments = pickle_list(&w->pickle);
    for (uint64_t i = 0; i < who->header.regions; i++)
        if (device_of(w->moment, who->regions[i].pool) >= 0)
            put_region(w, &segments, &who->regions[i]);
    pickle_list_end(&w->pickle, &segments);
}

/* Returns the word by which PyTorch's snapshots name this kind of event; NULL: they have none. */
static const char *action_of(const struct moment *m, const struct bfc_event *event) {
    static const char *const actions[BFC_EVENT_KINDS] = {[BFC_EVENT_ALLOCATE] = "alloc",
                                                         [BFC_EVENT_FREE] = "free_requested",
                                                         [BFC_EVENT_GROW] = "segment_alloc",
                                                         [BFC_EVENT_RELEASE] = "segment_free",
                                                         [BFC_EVENT_OUT_OF_MEMORY] = "oom"};
    enum bfc_event_kind kind = bfc_event_kind_of(event->what);
    const struct bfc_segment_pool *section = section_of(m, bfc_event_pool(event->what));
    if (section && section->pages.addresses && kind == BFC_EVENT_GROW)
        return "segment_map";
    if (section && section->pages.addresses && kind == BFC_EVENT_RELEASE)
        return "segment_unmap";
    return actions[kind];
}

static void put_call(struct writing *w, const struct call *call, const char *action) {
    const struct bfc_event *event = &call->event;
    enum bfc_event_kind kind = bfc_event_kind_of(event->what);
    const struct bfc_segment_pool *section = section_of(w->moment, bfc_event_pool(event->what));
    bool fails = kind == BFC_EVENT_OUT_OF_MEMORY;
    snapshot_begin_call(&w->pickle, &(struct snapshot_call){
                                        .action = action,
                                        .fails = fails,
                                        .address = fails ? section->device_free : event->address,
                                        .size = event->bytes,
                                        .us = w->moment->job->header.created_ns / 1000 +
                                              bfc_event_us(event->what)});
    if (kind == BFC_EVENT_ALLOCATE)
        put_frames(w, call->site);
    else
        snapshot_put_no_frames(&w->pickle);
    pickle_dict_end(&w->pickle);
}

static void put_device(struct writing *w, unsigned device) {
    const struct calls *calls = w->moment->calls;
    struct pickle_list list = pickle_list(&w->pickle);
    for (size_t i = 0; i < calls->count; i++) {
        const struct call *call = &calls->list[i];
        const char *action = action_of(w->moment, &call->event);
        bool frees = bfc_event_kind_of(call->event.what) == BFC_EVENT_FREE;
        if (!action || !call->known ||
            device_of(w->moment, bfc_event_pool(call->event.what)) != device)
            continue;
        pickle_item(&w->pickle, &list);
        put_call(w, call, action);
        if (!frees)
            continue;
        pickle_item(&w->pickle, &list);
        put_call(w, call, "free_completed");
    }
    pickle_list_end(&w->pickle, &list);
}

static void put_snapshot(struct writing *w) {
    pickle_dict(&w->pickle);
    put_segments(w);
    pickle_word(&w->pickle, "device_traces");
    struct pickle_list devices = pickle_list(&w->pickle);
    for (unsigned i = 0; i < count_devices(w->moment); i++) {
        pickle_item(&w->pickle, &devices);
        put_device(w, i);
    }
    pickle_list_end(&w->pickle, &devices);
    pickle_dict_end(&w->pickle);
}

bool write_pickle(struct moment *moment, FILE *file) {
    size_t living = moment->who->header.living;
    struct writing w = {.moment = moment,
                        .noted = calloc(moment->who->header.sites + 1, sizeof *w.noted),
                        .living = calloc(living + 1, sizeof *w.living)};
    bool good = w.noted && w.living;
    if (good) {
        for (size_t i = 0; i < living; i++)
            w.living[i] = moment->who->living[i];
        qsort(w.living, living, sizeof *w.living, by_id);
        pickle_begin(&w.pickle, file);
        put_snapshot(&w);
        pickle_end(&w.pickle);
    }
    free(w.noted);
    free(w.living);
    return good;
}

/* For one device: bytes in use as the program requested them (`live`), and bytes of all regions
 * without what is asleep, since falling asleep is told as a release, and waking as growth. If
 * events are missing, a counter may fall below zero; it then wraps around, and is written as 0. */
struct counters {
    uint64_t live, reserved;
};

/* Returns by how much a call (an allocation, a free, or a region that was taken or given back) has
 * changed the requested bytes in use and the bytes of all regions. */
static struct counters change_of(const struct call *call) {
    uint64_t bytes = call->known ? call->event.bytes : 0;
    enum bfc_event_kind kind = bfc_event_kind_of(call->event.what);
    return (struct counters){
        .live = kind == BFC_EVENT_ALLOCATE ? bytes
                : kind == BFC_EVENT_FREE   ? -bytes
                                           : 0,
        .reserved = kind == BFC_EVENT_GROW      ? bytes
                    : kind == BFC_EVENT_RELEASE ? -bytes
                                                : 0,
    };
}

/* Returns the device's requested bytes in use and bytes of all regions before the first call in
 * m->calls: their present values, less the changes by all those calls. */
static struct counters before_calls(const struct moment *m, unsigned device) {
    struct counters c = {0};
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (device_of(m, i) == device && m->job->pools[i].state == BFC_POOL_ACTIVE) {
            c.live += m->job->pools[i].stats.requested;
            c.reserved += m->job->pools[i].stats.reserved - m->job->pools[i].pages.asleep;
        }
    for (size_t i = 0; i < m->calls->count; i++)
        if (device_of(m, bfc_event_pool(m->calls->list[i].event.what)) == device) {
            c.live -= change_of(&m->calls->list[i]).live;
            c.reserved -= change_of(&m->calls->list[i]).reserved;
        }
    return c;
}

static void put_counters(unsigned device, uint64_t us, const struct counters *c, FILE *file) {
    fprintf(file,
            ",\n{\"name\":\"memory\",\"ph\":\"C\",\"pid\":%u,\"ts\":%" PRIu64
            ",\"args\":{\"live\":%" PRIu64 ",\"reserved\":%" PRIu64 "}}",
            device, us, c->live <= INT64_MAX ? c->live : 0,
            c->reserved <= INT64_MAX ? c->reserved : 0);
}

static void put_chrome_call(const struct call *call, unsigned device, struct counters *c,
                            FILE *file) {
    struct counters change = change_of(call);
    uint64_t us = bfc_event_us(call->event.what);
    c->live += change.live;
    c->reserved += change.reserved;
    if (change.live || change.reserved)
        put_counters(device, us, c, file);
    else if (bfc_event_kind_of(call->event.what) == BFC_EVENT_OUT_OF_MEMORY)
        fprintf(file,
                ",\n{\"name\":\"out of memory\",\"ph\":\"i\",\"s\":\"p\",\"pid\":%u,\"tid\":0,"
                "\"ts\":%" PRIu64 ",\"args\":{\"bytes\":%" PRIu64 "}}",
                device, us, call->event.bytes);
}

static void put_chrome_device(const struct moment *m, unsigned device, FILE *file) {
    struct counters c = before_calls(m, device);
    uint64_t begin = m->calls->count ? bfc_event_us(m->calls->list[0].event.what) : 0;
    fprintf(file,
            "%s\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"device "
            "%u\"}}",
            device ? "," : "", device, device);
    put_counters(device, begin, &c, file);
    for (size_t i = 0; i < m->calls->count; i++)
        if (device_of(m, bfc_event_pool(m->calls->list[i].event.what)) == device)
            put_chrome_call(&m->calls->list[i], device, &c, file);
}

void write_chrome_trace(const struct moment *moment, FILE *file) {
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", file);
    for (unsigned i = 0; i < count_devices(moment); i++)
        put_chrome_device(moment, i, file);
    fputs("\n]}\n", file);
}
