#include "tools/job/job_who.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/job/answer.h"

#define LARGEST_FILE ((size_t)256 << 20)

static bool counts_are_sound(const struct bfc_who_header *header, size_t size) {
    const uint64_t counts[] = {header->sites,   header->frames, header->objects, header->texts,
                               header->regions, header->blocks, header->living,  header->recent};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i] > size)
            return false;
    return true;
}

/* Sets the pointers in `who` to the parts of the answer's file. False: the header is not valid, or
 * the sizes of the parts do not add up to the size of the file. */
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

/* Whether the numbers of a call stack (site) are possible. They must be below 2^60, so that their
 * sums can be printed as 64-bit integers. */
static bool figures_are_sound(const struct bfc_who_site *site) {
    const double figures[] = {site->blocks, site->bytes, site->live_blocks, site->live_bytes};
    bool sound = site->live_variance >= 0 && site->live_variance < 0x1p120;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        sound = sound && figures[i] >= 0 && figures[i] < 0x1p60;
    return sound;
}

/* Whether the blocks that the answer lists for the region fill it without gaps or overlaps. */
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

static bool take_file(int file, void *to) {
    size_t size;
    void *bytes = bfc_answer_read(file, sizeof(struct bfc_who_header), LARGEST_FILE, &size);
    return bytes && bfc_who_adopt(to, bytes, size);
}

static uint32_t *who_asked(struct bfc_segment_header *header) {
    return &header->who_asked;
}

static uint32_t *who_written(struct bfc_segment_header *header) {
    return &header->who_written;
}

bool bfc_who_ask(int directory, const struct bfc_segment_name *name, unsigned timeout_ms,
                 bool blocks, struct bfc_who *who, char *reason, size_t size) {
    const struct bfc_question question = {
        .answer = BFC_WHO_ANSWER,
        .request = blocks ? bfc_request_who_and_blocks : bfc_request_who,
        .asked = who_asked,
        .written = who_written,
        .unknown = "which takes no stacks",
        .none = "has taken no stacks: BFC_STACKS=off, or it has allocated too little so far",
    };
    *who = (struct bfc_who){0};
    return bfc_answer_fetch(directory, name, &question, timeout_ms, take_file, who, reason, size);
}

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
    return good;
}

/* Compares the frames of call stacks, too, because another process may have got the same pid. A job
 * never removes frames, so each of its answers begins with all frames of its earlier ones. */
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
