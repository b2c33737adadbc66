#include "interpose/features/who/blocks.h"

#include <unistd.h>

#include "base/clock.h"
#include "interpose/stats/answer_file.h"

#define PART(array, count) ((struct bfc_answer_part){(array), (count) * sizeof *(array)})

static void fill_header(const struct bfc_sites *sites, struct bfc_who_header *header) {
    header->magic = BFC_WHO_MAGIC;
    header->version = BFC_WHO_VERSION;
    header->header_size = sizeof *header;
    header->site_size = sizeof *sites->sites;
    header->frame_size = sizeof *sites->frames;
    header->object_size = sizeof *sites->objects;
    header->pid = getpid();
    header->sites = sites->site_count;
    header->frames = sites->frame_count;
    header->objects = sites->object_count;
    header->texts = sites->text_bytes;
    header->written_ns = bfc_wall_clock_ns();
}

/* Sets four parts. */
static void add_blocks(const struct bfc_blocks *blocks, struct bfc_who_header *header,
                       struct bfc_answer_part *parts) {
    header->regions = blocks->region_count;
    header->blocks = blocks->block_count;
    header->living = blocks->living_count;
    header->recent = blocks->recent_count;
    header->left_out = blocks->left_out;
    parts[0] = PART(blocks->regions, blocks->region_count);
    parts[1] = PART(blocks->blocks, blocks->block_count);
    parts[2] = PART(blocks->living, blocks->living_count);
    parts[3] = PART(blocks->recent, blocks->recent_count);
}

void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header,
                        const struct bfc_blocks *blocks) {
    fill_header(sites, header);
    struct bfc_answer_part parts[] = {
        PART(header, 1),
        PART(sites->sites, sites->site_count),
        PART(sites->frames, sites->frame_count),
        PART(sites->objects, sites->object_count),
        [8] = PART(sites->texts, sites->text_bytes),
    };
    if (blocks)
        add_blocks(blocks, header, &parts[4]);
    bfc_answer_write(BFC_ANSWER_WHO, parts, sizeof parts / sizeof parts[0]);
}
