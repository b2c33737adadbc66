/* The request, and the file that answers it. */
#include "tools/job/who.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/shared_folder.h"
#include "layout/segment.h"
#include "segment/request.h"
#include "tools/job/client.h"
#include "tools/job/guard.h"

#define MOST_TRIES 5
#define LARGEST_FILE ((off_t)256 << 20)

/* ---- asking ---- */

struct asking {
    struct bfc_patience patience;
    bool blocks; /* wanted */
    bool has_helper, served, written;
};

static enum bfc_read_result ask(const struct bfc_segment_look *look, char *base, void *context) {
    struct asking *asking = context;
    struct bfc_segment_header *header = (struct bfc_segment_header *)(void *)base;
    (void)look;
    asking->has_helper = bfc_ask_wait_for_helper(header);
    if (!asking->has_helper)
        return BFC_READ_OK;
    struct bfc_request request = bfc_request_who(header, asking->blocks);
    uint32_t asked = bfc_load_relaxed(&header->who_asked);
    while (!(asking->served = bfc_request_is_served(&request)))
        if (!bfc_patience_nap(&asking->patience))
            break;
    /* A job whose library knows nothing of this leaves the word alone. */
    asking->written = (int32_t)(bfc_load_acquire(&header->who_written) - asked) >= 0;
    return BFC_READ_OK;
}

static bool ask_job(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                    bool blocks, char *reason, size_t size) {
    const struct bfc_segment_look look = {.name = name, .reason = reason, .reason_size = size};
    struct asking asking = {.patience = bfc_ask_patience(timeout_ms), .blocks = blocks};
    if (bfc_segment_visit_guarded(&look, directory, true, ask, &asking) != BFC_READ_OK)
        return false;
    if (!asking.has_helper)
        snprintf(reason, size, "process %d has ended, or has no helper thread", name->pid);
    else if (!asking.served)
        snprintf(reason, size, "process %d does not answer: it is stopped, or has ended",
                 name->pid);
    else if (!asking.written)
        snprintf(reason, size, "process %d runs an older bfcpreload, which takes no stacks",
                 name->pid);
    return asking.written;
}

/* ---- reading ---- */

static bool counts_are_sound(const struct bfc_who_header *header, size_t size) {
    const uint64_t counts[] = {header->sites,   header->frames, header->objects, header->texts,
                               header->regions, header->blocks, header->living,  header->recent};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i] > size)
            return false;
    return true;
}

/* Where the parts lie, if their sizes come to that of the file. */
static bool find_parts(struct bfc_who *who, size_t size) {
    const struct bfc_who_header *header = &who->header;
    if (header->magic != BFC_WHO_MAGIC || header->version != BFC_WHO_VERSION ||
        header->header_size != sizeof *header || header->site_size != sizeof *who->sites ||
        header->frame_size != sizeof *who->frames || header->object_size != sizeof *who->objects ||
        !counts_are_sound(header, size) || header->executable >= header->texts)
        return false;
    const char *at = (const char *)who->copy + sizeof *header;
    who->sites = (const void *)at;
    at += header->sites * sizeof *who->sites;
    who->frames = (const void *)at;
    at += header->frames * sizeof *who->frames;
    who->objects = (const void *)at;
    at += header->objects * sizeof *who->objects;
    who->regions = (const void *)at;
    at += header->regions * sizeof *who->regions;
    who->blocks = (const void *)at;
    at += header->blocks * sizeof *who->blocks;
    who->living = (const void *)at;
    at += header->living * sizeof *who->living;
    who->recent = (const void *)at;
    at += header->recent * sizeof *who->recent;
    who->texts = at;
    return at + header->texts == (const char *)who->copy + size && at[header->texts - 1] == '\0';
}

static bool frames_are_sound(const struct bfc_who *who, const struct bfc_who_site *site) {
    uint64_t end = site->first + site->native + site->python;
    if (site->first > who->header.frames || end > who->header.frames ||
        site->tag >= who->header.texts)
        return false;
    for (uint64_t i = site->first; i < site->first + site->native; i++)
        if (who->frames[i].object > who->header.objects)
            return false;
    for (uint64_t i = site->first + site->native; i < end; i++)
        if (who->frames[i].object >= who->header.texts || who->frames[i].file >= who->header.texts)
            return false;
    return true;
}

/* Below 2^60: sums of them can be printed. */
static bool figures_are_sound(const struct bfc_who_site *site) {
    const double figures[] = {site->blocks, site->bytes, site->live_blocks, site->live_bytes};
    bool sound = site->live_variance >= 0 && site->live_variance < 0x1p120;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        sound = sound && figures[i] >= 0 && figures[i] < 0x1p60;
    return sound;
}

/* Whether blocks tile the region. */
static bool region_is_sound(const struct bfc_who *who, const struct bfc_who_region *region) {
    uint64_t at = region->start, count = who->header.blocks;
    if (region->start + region->size < region->start || region->pool >= BFC_SEGMENT_POOLS ||
        region->first > count || region->blocks > count - region->first)
        return false;
    for (uint64_t i = region->first; i < region->first + region->blocks; i++) {
        if (who->blocks[i].start != at || who->blocks[i].size > region->start + region->size - at)
            return false;
        at += who->blocks[i].size;
    }
    return at == region->start + region->size;
}

static bool marks_are_sound(const struct bfc_who *who, const struct bfc_who_mark *marks,
                            uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (marks[i].site >= who->header.sites)
            return false;
    return true;
}

static bool blocks_are_sound(const struct bfc_who *who) {
    for (uint64_t i = 0; i < who->header.regions; i++)
        if (!region_is_sound(who, &who->regions[i]))
            return false;
    return marks_are_sound(who, who->living, who->header.living) &&
           marks_are_sound(who, who->recent, who->header.recent);
}

static bool is_sound(const struct bfc_who *who) {
    for (uint64_t i = 0; i < who->header.sites; i++)
        if (!frames_are_sound(who, &who->sites[i]) || !figures_are_sound(&who->sites[i]))
            return false;
    for (uint64_t i = 0; i < who->header.objects; i++)
        if (who->objects[i].path >= who->header.texts)
            return false;
    return blocks_are_sound(who);
}

static bool read_all(int file, char *bytes, size_t size) {
    while (size) {
        ssize_t length = read(file, bytes, size);
        if (length <= 0)
            return false;
        bytes += length;
        size -= (size_t)length;
    }
    return true;
}

bool bfc_who_adopt(struct bfc_who *who, void *bytes, size_t size) {
    *who = (struct bfc_who){.copy = bytes, .size = size};
    bool good = size >= sizeof who->header;
    if (good)
        memcpy(&who->header, bytes, sizeof who->header);
    good = good && find_parts(who, size) && is_sound(who);
    if (!good)
        bfc_who_free(who);
    return good;
}

static bool take_file(int file, struct bfc_who *who) {
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST_FILE ||
        (size_t)status.st_size < sizeof who->header)
        return false;
    size_t length = (size_t)status.st_size;
    void *bytes = malloc(length);
    if (bytes && read_all(file, bytes, length))
        return bfc_who_adopt(who, bytes, length);
    free(bytes);
    return false;
}

/* False: `reason` is set. `again`: another reader may have taken the file, or have had it written
 * anew meanwhile. */
static bool take_answer(int directory, const struct bfc_segment_name *name, struct bfc_who *who,
                        bool *again, char *reason, size_t size) {
    char path[BFC_SEGMENT_NAME_MAX + 16];
    snprintf(path, sizeof path, BFC_WHO_NAME_FORMAT, name->uid, (unsigned long)name->pid_namespace,
             name->pid);
    int file = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    bool good = file >= 0 && take_file(file, who);
    *again = file >= 0 || errno == ENOENT;
    if (file < 0 && errno == ENOENT)
        snprintf(
            reason, size,
            "process %d has taken no stacks: BFC_STACKS=off, or it has allocated too little so far",
            name->pid);
    else if (!good)
        snprintf(reason, size, "%s: %s", path, file < 0 ? strerror(errno) : "damaged");
    if (file >= 0) {
        close(file);
        unlinkat(directory, path, 0);
    }
    if (!good)
        bfc_who_free(who);
    return good;
}

bool bfc_who_ask(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                 bool blocks, struct bfc_who *who, char *reason, size_t size) {
    bool again = true;
    *who = (struct bfc_who){0};
    for (int tries = 0; tries < MOST_TRIES && again; tries++) {
        if (!ask_job(directory, name, timeout_ms, blocks, reason, size))
            return false;
        if (take_answer(directory, name, who, &again, reason, size))
            return true;
    }
    return false;
}

/* ---- kept for later ---- */

bool bfc_who_read(const char *path, struct bfc_who *who, char *reason, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *who = (struct bfc_who){0};
    bool good = file >= 0 && take_file(file, who);
    if (!good)
        snprintf(reason, size, "%s: %s", path,
                 file < 0 ? strerror(errno)
                          : "not a moment that this version's bfcstat who -o has saved");
    if (file >= 0)
        close(file);
    if (!good)
        bfc_who_free(who);
    return good;
}

bool bfc_who_save(const struct bfc_who *who, const char *path, char *reason, size_t size) {
    FILE *file = fopen(path, "we");
    bool good = file && fwrite(who->copy, 1, who->size, file) == who->size;
    good = (!file || fclose(file) == 0) && good;
    if (!good)
        snprintf(reason, size, "%s: %s", path, strerror(errno));
    return good;
}

/* A job's tables only grow. */
bool bfc_who_follows(const struct bfc_who *who, const struct bfc_who *before) {
    return who->header.pid == before->header.pid &&
           who->header.written_ns > before->header.written_ns &&
           who->header.frames >= before->header.frames &&
           memcmp(who->frames, before->frames, before->header.frames * sizeof *who->frames) == 0;
}

void bfc_who_free(struct bfc_who *who) {
    free(who->copy);
    *who = (struct bfc_who){0};
}
