#include "tools/plan/trace/stacks.h"

#include <stdlib.h>
#include <string.h>

static bool append_bytes(struct table *table, const char **from, size_t bytes) {
    char *grown = realloc(table->bytes, table->size + bytes + 1);
    if (!grown)
        return false;
    memcpy(grown + table->size, *from, bytes);
    *from += bytes;
    table->bytes = grown;
    table->size += bytes;
    return true;
}

bool stacks_append(struct stacks *stacks, const char *payload, size_t size) {
    struct bfc_trace_counts counts;
    if (size < sizeof counts)
        return false;
    memcpy(&counts, payload, sizeof counts);
    const uint64_t sites = counts.sites * (uint64_t)sizeof(struct bfc_who_site);
    const uint64_t frames = counts.frames * (uint64_t)sizeof(struct bfc_who_frame);
    const uint64_t objects = counts.objects * (uint64_t)sizeof(struct bfc_who_object);
    if (sites + frames + objects + counts.texts != size - sizeof counts)
        return false;
    const char *at = payload + sizeof counts;
    stacks->executable = counts.executable;
    return append_bytes(&stacks->sites, &at, sites) && append_bytes(&stacks->frames, &at, frames) &&
           append_bytes(&stacks->objects, &at, objects) &&
           append_bytes(&stacks->texts, &at, counts.texts);
}

uint32_t stacks_sites(const struct stacks *stacks) {
    return (uint32_t)(stacks->sites.size / sizeof(struct bfc_who_site));
}

static char *put_bytes(char *to, const void *from, size_t size) {
    if (size)
        memcpy(to, from, size);
    return to + size;
}

static size_t content_size(const struct stacks *stacks) {
    return stacks->sites.size + stacks->frames.size + stacks->objects.size + stacks->texts.size;
}

static void put_content(char *to, const struct stacks *stacks) {
    to = put_bytes(to, stacks->sites.bytes, stacks->sites.size);
    to = put_bytes(to, stacks->frames.bytes, stacks->frames.size);
    to = put_bytes(to, stacks->objects.bytes, stacks->objects.size);
    put_bytes(to, stacks->texts.bytes, stacks->texts.size);
}

char *stacks_payload(const struct stacks *stacks, size_t *size) {
    const struct bfc_trace_counts counts = {
        .sites = stacks_sites(stacks),
        .frames = (uint32_t)(stacks->frames.size / sizeof(struct bfc_who_frame)),
        .objects = (uint32_t)(stacks->objects.size / sizeof(struct bfc_who_object)),
        .texts = (uint32_t)stacks->texts.size,
        .executable = stacks->executable};
    *size = sizeof counts + content_size(stacks);
    char *payload = malloc(*size);
    if (payload)
        put_content(put_bytes(payload, &counts, sizeof counts), stacks);
    return payload;
}

bool stacks_who(const struct stacks *stacks, struct bfc_who *who) {
    const struct bfc_who_header header = {
        .magic = BFC_WHO_MAGIC,
        .version = BFC_WHO_VERSION,
        .header_size = sizeof header,
        .site_size = sizeof(struct bfc_who_site),
        .frame_size = sizeof(struct bfc_who_frame),
        .object_size = sizeof(struct bfc_who_object),
        .sites = stacks->sites.size / sizeof(struct bfc_who_site),
        .frames = stacks->frames.size / sizeof(struct bfc_who_frame),
        .objects = stacks->objects.size / sizeof(struct bfc_who_object),
        .texts = stacks->texts.size,
        .executable = stacks->executable};
    const size_t size = sizeof header + content_size(stacks);
    char *bytes = header.sites ? malloc(size) : NULL;
    if (!bytes)
        return false;
    put_content(put_bytes(bytes, &header, sizeof header), stacks);
    return bfc_who_adopt(who, bytes, size);
}

void stacks_free(struct stacks *stacks) {
    free(stacks->sites.bytes);
    free(stacks->frames.bytes);
    free(stacks->objects.bytes);
    free(stacks->texts.bytes);
}
