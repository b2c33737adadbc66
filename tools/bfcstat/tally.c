#include "tools/bfcstat/tally.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open_file.h"
#include "tools/bfcstat/identity.h"
#include "tools/bfcstat/shares.h"

/* How many shared-memory segments of one user, and of one block of 65,536 user ids (shares.h), are
 * kept open at most. */
#define MOST_OF_USER 256u
#define MOST_OF_BLOCK 400u

#define MOST_TALLIES 1024u
static const struct shares most_tallies = {.user = 32, .block = 128, .all = MOST_TALLIES};

/* The values that were last read from one pool's section of a shared-memory segment. */
struct seen {
    uint64_t context_id;
    uint64_t counts[TALLY_COUNTS];
    /* index of the tally (counters of a user on a device) to which the pool's values are added,
     * plus 1; 0: there is no room for one */
    size_t tally;
};

/* A shared-memory segment that is kept open, so that its counters can be read once more after its
 * job has ended. */
struct kept {
    struct bfc_segment_name name;
    int file;
    /* Whether the shared-memory segment was there before the folder was watched and has not been
     * read since. The first reading only notes the counters, because what the job did before is not
     * counted. */
    bool before;
    struct seen seen[BFC_SEGMENT_POOLS];
};

struct tally_book {
    char folder[4096];
    /* file descriptors of the folder and of the inotify watch on it; -1: the folder is not
     * watched */
    int directory, changes;
    struct kept kept[MOST_KEPT];
    size_t kept_count;
    uint32_t uids[MOST_TALLIES]; /* the user of each tally (counters of a user on a device) */
    struct tally tallies[MOST_TALLIES];
    size_t tally_count;
    struct shares shares; /* how many tallies each user has, and bounds on their number */
};

_Static_assert(MOST_TALLIES <= MOST_SHARES, "the tallies have shares");

/* Returns the index, plus 1, of the tally (counters of a user on a device) for this user and the
 * device of this pool; makes a new one if there is none. 0: there is no room for one. */
static size_t find_tally(struct tally_book *book, uint32_t uid,
                         const struct bfc_segment_pool *section) {
    char bus_id[sizeof section->device_bus_id];
    gpu_bus_id(section->device_bus_id, bus_id, sizeof bus_id);
    for (size_t i = 0; i < book->tally_count; i++)
        if (book->uids[i] == uid && strcmp(book->tallies[i].bus_id, bus_id) == 0 &&
            memcmp(book->tallies[i].uuid, section->device_uuid, 16) == 0)
            return i + 1;
    if (!shares_take(&book->shares, uid))
        return 0;
    struct tally *tally = &book->tallies[book->tally_count];
    book->uids[book->tally_count++] = uid;
    identity_name_user(uid, tally->user, sizeof tally->user);
    memcpy(tally->uuid, section->device_uuid, sizeof tally->uuid);
    memcpy(tally->bus_id, bus_id, sizeof tally->bus_id);
    return book->tally_count;
}

/* Adds to the tally of the user and device by how much a pool's counters, in its section of the
 * shared-memory segment, have risen since they were last read. If the section has been given to the
 * pool of another context, the counters have begun at 0 again. */
static void add_section(struct tally_book *book, struct kept *kept, unsigned index,
                        const struct bfc_segment_pool *section) {
    const struct bfc_pool_stats *stats = &section->stats;
    struct seen *seen = &kept->seen[index];
    uint64_t counts[TALLY_COUNTS] = {
        [TALLY_ALLOCATIONS] = stats->allocations,
        [TALLY_MISSES] = stats->misses,
        [TALLY_RETRIES] = stats->retries,
        [TALLY_OUT_OF_MEMORY] = stats->out_of_memory,
        [TALLY_INVALID_FREES] = stats->invalid_frees,
    };
    bool other = seen->context_id != section->context_id;
    seen->tally = find_tally(book, kept->name.uid, section);
    for (size_t i = 0; i < TALLY_COUNTS; i++) {
        uint64_t before = other || counts[i] < seen->counts[i] ? 0 : seen->counts[i];
        if (seen->tally && !kept->before)
            book->tallies[seen->tally - 1].counts[i] += counts[i] - before;
        seen->counts[i] = counts[i];
    }
    seen->context_id = section->context_id;
}

/* Reads a job's counters and adds what is new to the tallies (counters of a user on a device). The
 * job may change its counters during the reading, but the sequence numbers that mark changes need
 * not be checked: counters only rise, so the next reading adds what this one misses. */
static void read_kept(struct tally_book *book, struct kept *kept) {
    static struct bfc_segment_header header;
    static struct bfc_segment_pool sections[BFC_SEGMENT_POOLS];
    const struct bfc_segment_look look = {.name = &kept->name};
    if (!bfc_segment_read_at(kept->file, &header, sizeof header, 0) ||
        bfc_segment_check_magic(&look, header.magic, header.version) != BFC_READ_OK ||
        bfc_segment_check_header(&look, &header) != BFC_READ_OK ||
        !bfc_segment_read_at(kept->file, sections, sizeof sections, BFC_SEGMENT_POOLS_OFFSET))
        return;
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++) {
        sections[i].device_bus_id[sizeof sections[i].device_bus_id - 1] = '\0';
        if (sections[i].state != BFC_POOL_UNUSED && !bfc_pool_is_host(&sections[i]))
            add_section(book, kept, i, &sections[i]);
    }
    kept->before = false;
}

static struct kept *find_kept(struct tally_book *book, const char *name) {
    for (size_t i = 0; i < book->kept_count; i++)
        if (strcmp(book->kept[i].name.text, name) == 0)
            return &book->kept[i];
    return NULL;
}

static void drop_kept(struct tally_book *book, struct kept *kept) {
    close(kept->file);
    *kept = book->kept[--book->kept_count];
}

/* Reads a job's counters for the last time, counts the job as ended on each device that it used,
 * and closes its shared-memory segment. */
static void end_kept(struct tally_book *book, struct kept *kept) {
    read_kept(book, kept);
    for (size_t i = 0; i < BFC_SEGMENT_POOLS; i++) {
        size_t tally = kept->seen[i].tally, k = 0;
        while (k < i && kept->seen[k].tally != tally)
            k++;
        if (tally && k == i)
            book->tallies[tally - 1].counts[TALLY_JOBS_ENDED]++;
    }
    drop_kept(book, kept);
}

/* Whether one more shared-memory segment of the user may be kept open. There is a bound for each
 * user, one for each block of 65,536 user ids, and one for all users together (shares.h). */
static bool has_room(const struct tally_book *book, uint32_t uid) {
    size_t user = 0, block = 0;
    for (size_t i = 0; i < book->kept_count; i++) {
        user += book->kept[i].name.uid == uid;
        block += book->kept[i].name.uid >> 16 == uid >> 16;
    }
    return user < MOST_OF_USER && (block < MOST_OF_BLOCK || uid >> 16 == 0) &&
           book->kept_count < MOST_KEPT;
}

/* Whether the file is a shared-memory segment of the user in its name. Any user may give a file any
 * name, so it must also be owned by that user. */
static bool is_own(const struct stat *status, const struct bfc_segment_name *name) {
    return S_ISREG(status->st_mode) && status->st_uid == name->uid;
}

static void keep_segment(struct tally_book *book, const struct bfc_segment_name *name,
                         bool before) {
    struct stat status;
    struct kept *kept = find_kept(book, name->text);
    if (kept)
        end_kept(book, kept);
    if (fstatat(book->directory, name->text, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_own(&status, name) || !has_room(book, name->uid))
        return;
    int file = bfc_open_at(book->directory, name->text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0)
        return;
    if (fstat(file, &status) != 0 || !is_own(&status, name)) {
        close(file);
        return;
    }
    kept = &book->kept[book->kept_count++];
    *kept = (struct kept){.name = *name, .file = file, .before = before};
}

static bool keep_found(void *context, int directory, const struct bfc_segment_name *name) {
    struct tally_book *book = context;
    (void)directory;
    if (!find_kept(book, name->text))
        keep_segment(book, name, true);
    return true;
}

/* Closes a shared-memory segment that is kept open. Counts its job as ended only if the segment was
 * removed; otherwise only reads its counters once more. */
static void leave_kept(struct tally_book *book, struct kept *kept) {
    struct stat status;
    if (fstat(kept->file, &status) == 0 && status.st_nlink == 0) {
        end_kept(book, kept);
    } else {
        read_kept(book, kept);
        drop_kept(book, kept);
    }
}

static void stop_watching(struct tally_book *book) {
    while (book->kept_count)
        leave_kept(book, &book->kept[0]);
    if (book->directory >= 0)
        close(book->directory);
    if (book->changes >= 0)
        close(book->changes);
    book->directory = book->changes = -1;
}

static void start_watching(struct tally_book *book) {
    const uint32_t events = IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR;
    book->directory = bfc_segment_directory_open(book->folder);
    book->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (book->directory < 0 || book->changes < 0 ||
        inotify_add_watch(book->changes, book->folder, events) < 0)
        stop_watching(book);
    else
        bfc_segment_names_visit(book->directory, SIZE_MAX, keep_found, book);
}

/* Handles one change of the folder, which inotify reports. False: changes were lost because
 * inotify's queue was full, or the folder is gone; the folder must then be read anew. */
static bool take_change(struct tally_book *book, const struct inotify_event *event) {
    struct bfc_segment_name name;
    if (event->mask & (IN_Q_OVERFLOW | IN_IGNORED))
        return false;
    if (!event->len || !bfc_segment_name_parse(event->name, &name))
        return true;
    struct kept *kept = find_kept(book, name.text);
    if (event->mask & (IN_CREATE | IN_MOVED_TO))
        keep_segment(book, &name, false);
    else if (kept)
        end_kept(book, kept);
    return true;
}

void tally_follow(struct tally_book *book) {
    _Alignas(struct inotify_event) char changes[16384];
    ssize_t length;
    bool good = true;
    while (book->changes >= 0 && good &&
           (length = read(book->changes, changes, sizeof changes)) > 0) {
        for (char *at = changes; at < changes + length && good;) {
            const struct inotify_event *event = (const void *)at;
            good = take_change(book, event);
            at += sizeof *event + event->len;
        }
    }
    if (!good)
        stop_watching(book);
}

/* Whether the folder's path still leads to the folder that is watched, and not to a new one. */
static bool is_watched(const struct tally_book *book) {
    struct stat named, watched;
    return book->directory >= 0 && stat(book->folder, &named) == 0 &&
           fstat(book->directory, &watched) == 0 && named.st_dev == watched.st_dev &&
           named.st_ino == watched.st_ino;
}

struct tally_book *tally_begin(const char *folder) {
    struct tally_book *book = calloc(1, sizeof *book);
    if (!book)
        return NULL;
    book->shares = most_tallies;
    snprintf(book->folder, sizeof book->folder, "%s", folder);
    start_watching(book);
    return book;
}

void tally_end(struct tally_book *book) {
    if (book)
        stop_watching(book);
    free(book);
}

int tally_descriptor(const struct tally_book *book) {
    return book->changes;
}

void tally_show(struct tally_book *book, struct findings *findings) {
    tally_follow(book);
    if (!is_watched(book)) {
        stop_watching(book);
        start_watching(book);
    }
    for (size_t i = 0; i < book->kept_count; i++)
        read_kept(book, &book->kept[i]);
    findings->tallies = book->tallies;
    findings->tally_count = book->tally_count;
}
