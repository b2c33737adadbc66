/* The file that answers who_asked. */
#include "interpose/who/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/open.h"
#include "base/shared_folder.h"
#include "interpose/config/process.h"
#include "interpose/host/quiet.h"

static char path[96]; /* of the last one; "": none */
static char executable[PATH_MAX];
static bool ended; /* atomic: the process exits */

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

static bool write_all(int file, const void *bytes, size_t size) {
    for (const char *at = bytes; size;) {
        ssize_t written = write(file, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

static bool write_blocks(int file, const struct bfc_blocks *blocks) {
    return write_all(file, blocks->regions, blocks->region_count * sizeof *blocks->regions) &&
           write_all(file, blocks->blocks, blocks->block_count * sizeof *blocks->blocks) &&
           write_all(file, blocks->living, blocks->living_count * sizeof *blocks->living) &&
           write_all(file, blocks->recent, blocks->recent_count * sizeof *blocks->recent);
}

static bool write_tables(int file, const struct bfc_sites *sites,
                         const struct bfc_who_header *header, const struct bfc_blocks *blocks) {
    return write_all(file, header, sizeof *header) &&
           write_all(file, sites->sites, sites->site_count * sizeof *sites->sites) &&
           write_all(file, sites->frames, sites->frame_count * sizeof *sites->frames) &&
           write_all(file, sites->objects, sites->object_count * sizeof *sites->objects) &&
           (!blocks || write_blocks(file, blocks)) &&
           write_all(file, sites->texts, sites->text_bytes) &&
           write_all(file, executable, strlen(executable) + 1);
}

void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header,
                        const struct bfc_blocks *blocks) {
    struct bfc_quiet quiet;
    bfc_quiet_begin(&quiet);
    snprintf(path, sizeof path, BFC_SHARED_FOLDER "/" BFC_WHO_NAME_FORMAT, getuid(),
             (unsigned long)bfc_pid_namespace(), getpid());
    unlink(path);
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[length > 0 ? length : 0] = '\0';
    fill_header(sites, header);
    if (blocks)
        count_blocks(blocks, header);
    int file = bfc_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    int failed = file < 0 || !write_tables(file, sites, header, blocks) ? errno : 0;
    if (file >= 0)
        close(file);
    if (file >= 0 && (failed || bfc_load_seq_cst(&ended)))
        unlink(path);
    bfc_quiet_end(&quiet);
    if (failed)
        bfc_log(BFC_LOG_WARN, "who: %s: %s", path, strerror(failed));
}

/* What no reader has taken away. A forked child has no right to it. */
__attribute__((destructor)) static void remove_file(void) {
    bfc_store_seq_cst(&ended, true);
    if (path[0] && bfc_process_if_made())
        unlink(path);
}
