/* Reads the process's options, and decides whether the library may act in this process. */
#include "interpose/config/process.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/file_name.h"
#include "interpose/config/routes.h"
#include "interpose/config/settings_file.h"
#include "interpose/driver/driver.h"
#include "interpose/host/c_library.h"
#include "interpose/host/quiet.h"
#include "interpose/host/scratch.h"
#include "interpose/table/feature.h"

/* Returns the address of a variable of the C library; if there is none of this name, the address of
 * a NULL pointer. The variable is looked up at run time, because the loader would have to resolve a
 * linked reference at the start of every process, even of one without CUDA. */
static void *libc_variable(const char *name) {
    static void *nothing;
    void *variable = bfc_bound_function(name);
    return variable ? variable : (void *)&nothing;
}

struct bfc_process *bfc_process_made;

static void keep_complaint(void *context, const char *line) {
    char *complaints = ((struct bfc_process *)context)->complaints;
    size_t used = strlen(complaints);
    snprintf(complaints + used, BFC_COMPLAINTS - used, "%s\n", line);
}

static void print_complaints(const struct bfc_process *process) {
    if (process->options.log < BFC_LOG_ERROR)
        return;
    if (process->complaints[0])
        bfc_quiet_write(process->complaints, strlen(process->complaints));
    if (process->refuse)
        bfc_log(BFC_LOG_ERROR, "BFC_STRICT=1: allocations fail until the settings are mended");
}

/* Whether one of the patterns matches the executable's file name or the name that it was called
 * by. */
static bool executable_matches(const char *patterns) {
    char *path = bfc_scratch_begin(PATH_MAX);
    bool matches = false;
    if (path && readlink("/proc/self/exe", path, PATH_MAX - 1) > 0)
        matches = bfc_patterns_match(patterns, bfc_file_name(path));
    bfc_scratch_end(path, PATH_MAX);
    if (matches)
        return true;
    const char *called = *(char **)libc_variable("program_invocation_short_name");
    return called && bfc_patterns_match(patterns, called);
}

/* Whether compute-sanitizer runs this program. It checks accesses against the driver's allocations,
 * so it would take each region of a pool for one allocation. It sets the variables that are read
 * here (observed with version 12.9). */
static bool is_watched(void) {
    const char *injected = getenv("NVTX_INJECTION64_PATH");
    return getenv("NV_SANITIZER_INJECTION_PORT_BASE") ||
           (injected && strstr(injected, "sanitizer-collection"));
}

/* Returns the variable that disables the library, or NULL. A variable that limits pooling
 * (BFC_OPTION_BINDING) does so if its value cannot be read, since pooling without that limit would
 * be less safe than what the user asked for. With BFC_STRICT=1 allocations fail instead. */
static const char *find_objection(const struct bfc_options *options) {
    if (options->disable)
        return "BFC_DISABLE";
    if (!options->strict && bfc_options_unread(options))
        return bfc_options_unread(options);
    if (options->only[0] && !executable_matches(options->only))
        return "BFC_ONLY";
    return options->not_in[0] && executable_matches(options->not_in) ? "BFC_NOT" : NULL;
}

/* Sets the free mode to sync if the driver is older than CUDA 12.5: it cannot record the events
 * that fences need, so every free must wait. Returns true if the mode was another one. */
static bool fall_back_to_sync(struct bfc_options *options) {
    const struct bfc_driver *driver = bfc_driver();
    if (options->free_mode == BFC_FREE_SYNC || !driver || driver->can_fence)
        return false;
    options->free_mode = BFC_FREE_SYNC;
    return true;
}

static void log_decisions(const struct bfc_process *process, bool fell_back, bool watched,
                          const char *objection) {
    if (fell_back && process->active)
        bfc_log(BFC_LOG_ERROR, "this driver is older than CUDA 12.5: BFC_FREE=sync is in force");
    if (objection)
        bfc_log(BFC_LOG_INFO, "%s: this process is left alone, every call goes to the driver",
                objection);
    else if (watched)
        bfc_log(BFC_LOG_ERROR, "compute-sanitizer cannot see the blocks of a pool: stepping aside, "
                               "every call goes to the driver");
}

/* Whether the process has more rights than the user who started it (setuid, with
 * /etc/ld.so.preload): then this user's files and variables must not change what it does, nor make
 * it write files. getauxval is looked up at run time, because a linked reference to it would add a
 * symbol version that the loader checks at the start of every process. */
static bool has_more_rights(void) {
    unsigned long (*get)(unsigned long);
    *(void **)&get = bfc_bound_function("getauxval");
    return !get || get(AT_SECURE);
}

/* Reads the settings files and the environment, unless the process has more rights than its user.
 * Returns the number of complaints. */
static unsigned read_settings(struct bfc_process *process) {
    char *const *environment = *(char ***)libc_variable("environ");
    struct bfc_settings_listener listener = {.complain = keep_complaint, .context = process};
    struct bfc_options *options = &process->options;
    unsigned errors = 0;
    if (!has_more_rights()) {
        errors = bfc_settings_read(options, environment, &listener);
        errors += bfc_options_read(options, environment, keep_complaint, process);
    }
    return errors + bfc_left_out_settle(options, keep_complaint, process);
}

/* Maps memory of zeros for the process's state. In any child with a copy of this process's memory
 * the kernel sets it to zero, even after a raw clone, which calls no atfork handler. NULL: the host
 * has no memory, or the kernel is older than Linux 4.14 and has no MADV_WIPEONFORK. */
static struct bfc_process *map_process(void) {
    struct bfc_process *process = bfc_scratch_begin(sizeof *process);
    if (process && madvise(process, sizeof *process, MADV_WIPEONFORK) != 0) {
        bfc_scratch_end(process, sizeof *process);
        return NULL;
    }
    return process;
}

/* Several threads may make the process's state at once. The state that is published first is kept,
 * the others are unmapped. */
static struct bfc_process *make_process(void) {
    struct bfc_process *process = map_process();
    if (!process)
        return NULL;
    bfc_options_init(&process->options);
    process->configuration_errors = read_settings(process);
    bool watched = is_watched();
    const char *objection = find_objection(&process->options);
    process->active = !watched && !objection;
    bool fell_back = fall_back_to_sync(&process->options);
    process->refuse = process->active && process->options.strict && process->configuration_errors;
    process->serves = process->active && !process->refuse;
    process->alive = true;
    const struct bfc_driver *driver = bfc_driver();
    bool usual = process->serves && !process->options.record[0] &&
                 process->options.summary != BFC_SUMMARY_LEAKS && driver && driver->can_pool;
    process->usual = usual ? BFC_USUAL : BFC_USUAL_FREES;
    bfc_features_begin();
    struct bfc_process *first = NULL;
    if (!bfc_compare_exchange_seq_cst(&bfc_process_made, &first, process)) {
        bfc_scratch_end(process, sizeof *process);
        return first;
    }
    bfc_log_begin(&process->options.log);
    print_complaints(process);
    log_decisions(process, fell_back, watched, objection);
    bfc_routes_begin();
    return process;
}

const struct bfc_process *bfc_process(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    if (!process) {
        int reason = errno;
        process = make_process();
        errno = reason;
    }
    return process && process->alive ? process : NULL;
}

bool bfc_process_has_environment(void) {
    return *(char ***)libc_variable("environ");
}

bool bfc_process_read_options(struct bfc_options *options) {
    int error = errno;
    struct bfc_process *process = bfc_scratch_begin(sizeof *process);
    if (!process)
        return false;
    bfc_options_init(&process->options);
    read_settings(process);
    *options = process->options;
    bool pools = !is_watched() && !find_objection(options);
    bfc_scratch_end(process, sizeof *process);
    errno = error;
    return pools;
}

/* Needs no check of `alive`: in a forked child the state is all zeros, so no flag is left to
 * clear. */
void bfc_process_no_longer_usual(void) {
    struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    if (process)
        bfc_fetch_and_seq_cst(&process->usual, ~(unsigned)BFC_USUAL_CALLS);
}

void bfc_process_watch_frees(bool watch) {
    struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    if (process && watch)
        bfc_fetch_and_seq_cst(&process->usual, ~(unsigned)BFC_USUAL_FREES);
    else if (process && process->alive)
        bfc_fetch_or_seq_cst(&process->usual, BFC_USUAL_FREES);
}
