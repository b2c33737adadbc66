/* The file that answers who_asked. */
#include "interpose/features/who/who_file.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "interpose/stats/answer_file.h"

static char executable[PATH_MAX];

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
    header->executable = sites->text_bytes; /* behind the others */
    header->texts = sites->text_bytes + strlen(executable) + 1;
    header->written_ns = bfc_wall_clock_ns();
}

/* Into the four parts from `parts` on, which stay empty without any. */
static void add_blocks(const struct bfc_blocks *blocks, struct bfc_who_header *header,
                       struct bfc_answer_part *parts) {
    if (!blocks)
        return;
    header->regions = blocks->region_count;
    header->blocks = blocks->block_count;
    header->living = blocks->living_count;
    header->recent = blocks->recent_count;
    header->left_out = blocks->left_out;
    parts[0] =
        (struct bfc_answer_part){blocks->regions, blocks->region_count * sizeof *blocks->regions};
    parts[1] =
        (struct bfc_answer_part){blocks->blocks, blocks->block_count * sizeof *blocks->blocks};
    parts[2] =
        (struct bfc_answer_part){blocks->living, blocks->living_count * sizeof *blocks->living};
    parts[3] =
        (struct bfc_answer_part){blocks->recent, blocks->recent_count * sizeof *blocks->recent};
}

void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header,
                        const struct bfc_blocks *blocks) {
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[length > 0 ? length : 0] = '\0';
    fill_header(sites, header);
    struct bfc_answer_part parts[] = {
        {header, sizeof *header},
        {sites->sites, sites->site_count * sizeof *sites->sites},
        {sites->frames, sites->frame_count * sizeof *sites->frames},
        {sites->objects, sites->object_count * sizeof *sites->objects},
        [8] = {sites->texts, sites->text_bytes},
        {executable, strlen(executable) + 1},
    };
    add_blocks(blocks, header, &parts[4]);
    bfc_answer_write(BFC_ANSWER_WHO, parts, sizeof parts / sizeof parts[0]);
}
