/* The file that answers who_asked. */
#include "interpose/who/file.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "interpose/stats/answer.h"

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

static void count_blocks(const struct bfc_blocks *blocks, struct bfc_who_header *header) {
    header->regions = blocks->region_count;
    header->blocks = blocks->block_count;
    header->living = blocks->living_count;
    header->recent = blocks->recent_count;
    header->left_out = blocks->left_out;
}

void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header,
                        const struct bfc_blocks *blocks) {
    static const struct bfc_blocks no_blocks;
    if (!blocks)
        blocks = &no_blocks;
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[length > 0 ? length : 0] = '\0';
    fill_header(sites, header);
    count_blocks(blocks, header);
    const struct bfc_answer_part parts[] = {
        {header, sizeof *header},
        {sites->sites, sites->site_count * sizeof *sites->sites},
        {sites->frames, sites->frame_count * sizeof *sites->frames},
        {sites->objects, sites->object_count * sizeof *sites->objects},
        {blocks->regions, blocks->region_count * sizeof *blocks->regions},
        {blocks->blocks, blocks->block_count * sizeof *blocks->blocks},
        {blocks->living, blocks->living_count * sizeof *blocks->living},
        {blocks->recent, blocks->recent_count * sizeof *blocks->recent},
        {sites->texts, sites->text_bytes},
        {executable, strlen(executable) + 1},
    };
    bfc_answer_write(BFC_ANSWER_WHO, parts, sizeof parts / sizeof parts[0]);
}
