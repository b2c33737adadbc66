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

void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header) {
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[length > 0 ? length : 0] = '\0';
    fill_header(sites, header);
    const struct bfc_answer_part parts[] = {
        {header, sizeof *header},
        {sites->sites, sites->site_count * sizeof *sites->sites},
        {sites->frames, sites->frame_count * sizeof *sites->frames},
        {sites->objects, sites->object_count * sizeof *sites->objects},
        {sites->texts, sites->text_bytes},
        {executable, strlen(executable) + 1},
    };
    bfc_answer_write(BFC_ANSWER_WHO, parts, sizeof parts / sizeof parts[0]);
}
