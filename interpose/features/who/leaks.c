#include "interpose/features/who/frees.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file_name.h"
#include "interpose/config/process.h"
#include "interpose/features/common/message.h"
#include "interpose/features/who/samples.h"
#include "interpose/features/who/sites.h"
#include "interpose/host/c_library.h"

enum { SHOWN_SITES = 50, MESSAGE = 1 << 18 };

/* Finds the exported function that contains an address. False: there is none, or the library that
 * the address belonged to was unloaded and another is loaded there. */
static bool find_function(const struct bfc_who_object *object, uint64_t address, Dl_info *info) {
    int (*find)(const void *, Dl_info *);
    *(void **)&find = bfc_c_function("dladdr");
    return find && find((const void *)address, info) && info->dli_sname &&
           (uint64_t)info->dli_fbase == object->start;
}

/* Returns the name of the file that a frame's code comes from; "" if it comes from no file. */
static const char *file_of(const struct bfc_who_frame *frame) {
    if (frame->object == 0)
        return "";
    const char *path = bfc_sites.texts + bfc_sites.objects[frame->object - 1].path;
    return *path ? bfc_file_name(path) : program_invocation_short_name;
}

static void add_native(struct bfc_message *message, const struct bfc_who_frame *frame) {
    Dl_info info;
    if (frame->object == 0) {
        bfc_message_add(message, "    0x%" PRIx64 " (no file)\n", frame->place);
        return;
    }
    const struct bfc_who_object *object = &bfc_sites.objects[frame->object - 1];
    const char *file = file_of(frame);
    if (find_function(object, object->start + frame->place, &info))
        bfc_message_add(message, "    %s (%s+0x%" PRIx64 ")\n", info.dli_sname, file, frame->place);
    else
        bfc_message_add(message, "    %s+0x%" PRIx64 "\n", file, frame->place);
}

static bool is_interpreter(const struct bfc_who_frame *frame) {
    const char *file = file_of(frame);
    return strncmp(file, "python", 6) == 0 || strncmp(file, "libpython", 9) == 0;
}

/* Adds the call stack with this index in bfc_sites to the message. From the first frame of the
 * Python interpreter on, the Python functions are listed in place of the interpreter's own. */
static void add_stack(struct bfc_message *message, uint32_t index) {
    const struct bfc_who_site *site = &bfc_sites.sites[index];
    const struct bfc_who_frame *frames = &bfc_sites.frames[site->first];
    for (uint32_t i = 0; i < site->native; i++) {
        if (site->python && is_interpreter(&frames[i]))
            break;
        add_native(message, &frames[i]);
    }
    for (uint32_t i = 0; i < site->python; i++) {
        const struct bfc_who_frame *frame = &frames[site->native + i];
        bfc_message_add(message, "    %s (%s:%" PRIu64 ")\n", bfc_sites.texts + frame->object,
                        bfc_file_name(bfc_sites.texts + frame->file), frame->place);
    }
    if (site->native + site->python == 0)
        bfc_message_add(message, "    (its stack could not be walked, or there was no room)\n");
}

/* Goes through the call stacks of bfc_sites in the order of bytes in use, largest first, and of
 * equal ones in the order of their indices. Returns the index of the one after `last`, which has
 * `bytes` bytes in use; 0: there is none. */
static uint32_t next_largest(double bytes, uint32_t last) {
    uint32_t best = 0;
    double most = 0;
    for (uint32_t i = 1; i < bfc_sites.site_count; i++) {
        double here = bfc_sites.sites[i].live_bytes;
        bool after = here < bytes || (here == bytes && i > last);
        if (after && here > most) {
            best = i;
            most = here;
        }
    }
    return best;
}

static void add_leaks(struct bfc_message *message) {
    double bytes = 0, blocks = 0;
    unsigned sites = 0, shown = 0;
    for (size_t i = 0; i < bfc_sites.site_count; i++) {
        bytes += bfc_sites.sites[i].live_bytes;
        blocks += bfc_sites.sites[i].live_blocks;
        sites += bfc_sites.sites[i].live_samples != 0;
    }
    bfc_message_add(
        message, "bfcpreload: not freed by process %d (%s): %s in %.0f block%s, from %u site%s\n",
        (int)getpid(), program_invocation_short_name, BFC_BYTES((uint64_t)bytes), blocks,
        blocks > 1 || blocks < 1 ? "s" : "", sites, bfc_plural(sites));
    double last_bytes = 0x1p63;
    for (uint32_t i = 0; shown < SHOWN_SITES && (i = next_largest(last_bytes, i)); shown++) {
        const struct bfc_who_site *site = &bfc_sites.sites[i];
        last_bytes = site->live_bytes;
        bfc_message_add(message, "  %s in %.0f block%s, allocated at\n",
                        BFC_BYTES((uint64_t)site->live_bytes), site->live_blocks,
                        site->live_blocks > 1 ? "s" : "");
        add_stack(message, i);
    }
    if (shown < sites)
        bfc_message_add(message, "  and %u more site%s\n", sites - shown,
                        bfc_plural(sites - shown));
}

static void add_history(struct bfc_message *message, const struct bfc_refused_free *free) {
    if (free->inside) {
        bfc_message_add(message, "  which is %" PRIu64 " byte%s inside a block of %s in use%s\n",
                        free->inside, bfc_plural(free->inside), BFC_BYTES(free->bytes),
                        free->allocated_at ? ", allocated at" : "");
        if (free->allocated_at)
            add_stack(message, free->allocated_at);
    }
    if (free->freed_at) {
        bfc_message_add(message, "  which was freed before at\n");
        add_stack(message, free->freed_at);
    }
}

static void add_refused(struct bfc_message *message) {
    const struct bfc_refused_free *refused;
    size_t count = bfc_who_refused_frees(&refused);
    for (size_t i = 0; i < count; i++) {
        bfc_message_add(message,
                        "bfcpreload: invalid free of 0x%" PRIx64 ", %" PRIu64 " time%s, at\n",
                        refused[i].address, refused[i].times, bfc_plural(refused[i].times));
        add_stack(message, refused[i].site);
        add_history(message, &refused[i]);
    }
}

static void write_message(bool sampled) {
    struct bfc_message *message = bfc_message_begin(MESSAGE);
    if (!message)
        return;
    if (sampled) {
        pool_lock(&bfc_who_lock);
        add_leaks(message);
        add_refused(message);
        pool_unlock(&bfc_who_lock);
    } else {
        bfc_message_add(message,
                        "bfcpreload: not freed by process %d (%s): nothing was allocated\n",
                        (int)getpid(), program_invocation_short_name);
    }
    bfc_message_end(message);
}

static bool leaks_exist(void) {
    bool exist = false;
    pool_lock(&bfc_who_lock);
    for (size_t i = 0; i < bfc_sites.site_count && !exist; i++)
        exist = bfc_sites.sites[i].live_samples != 0;
    pool_unlock(&bfc_who_lock);
    return exist;
}

static void *c_exit; /* the C library's function `exit` */

/* An exit handler that calls exit a second time, to end the process with another status. The C
 * library then goes on with the exit handlers that are left. */
static void exit_again(void *status) {
    void (*again)(int);
    *(void **)&again = c_exit;
    again((int)(intptr_t)status);
}

/* Makes `status` the exit status of the exiting process, by an exit handler that is registered now.
 * It runs after the destructors of all libraries, so that none of them is skipped. */
static void exit_with(int status) {
    int (*at_exit)(void (*)(void *), void *, void *);
    c_exit = bfc_c_function("exit");
    *(void **)&at_exit = bfc_c_function("__cxa_atexit");
    if (c_exit && at_exit)
        at_exit(exit_again, (void *)(intptr_t)status, NULL);
}

void bfc_leaks_at_exit(const struct bfc_process *process) {
    struct bfc_who_header header;
    if (process->options.summary != BFC_SUMMARY_LEAKS)
        return;
    bool sampled = bfc_who_bring_up_to_date(&header);
    if (process->options.log >= BFC_LOG_ERROR)
        write_message(sampled);
    int status = (int)process->options.leak_exit;
    if (status && sampled && leaks_exist())
        exit_with(status);
}
