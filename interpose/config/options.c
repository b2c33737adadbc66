/* The BFC_ variables: table, parser, printer. */
#include "interpose/config/options.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "interpose/config/distance.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

#define AT(field) offsetof(struct bfc_options, field)

/* The everyday rows first; within both parts in the order of the manual. */
const struct bfc_option bfc_option_table[] = {
    {"BFC_MODE", BFC_OPTION_CHOICE, "exact", "exact, fast, compact", 0, 0, AT(mode),
     "Chooses settings that belong together; one that is set by itself counts over the mode's. "
     "exact: a "
     "free waits as cudaFree does (BFC_FREE=sync). fast: it does not wait (BFC_FREE=ordered). "
     "compact: "
     "least memory (BFC_BACKING=auto, BFC_PLAN=auto).",
     NULL, BFC_OPTION_BINDING},
    {"BFC_LIMIT", BFC_OPTION_AMOUNT, "none", NULL, 0, 0, AT(limit),
     "Sets the most bytes that this process may reserve on one device; an "
     "allocation beyond it fails with out of memory. At none only the device limits "
     "it.",
     NULL, BFC_OPTION_BINDING},
    {"BFC_RESERVE", BFC_OPTION_SHARE, "0", NULL, 0, 0, AT(reserve),
     "Sets how many bytes of device memory the pool leaves free for others whenever "
     "it grows; at 0 it may take all that is free.",
     NULL, BFC_OPTION_BINDING},
    {"BFC_SPILL", BFC_OPTION_SIZE, "0", NULL, 0, TIB, AT(spill),
     "Sets how many bytes of host memory, over all devices, this process may pin and hand out in "
     "place of device memory once the device has no more to give; at 0 such an allocation fails "
     "with out of memory.",
     NULL, BFC_OPTION_BINDING},
    {"BFC_WAIT", BFC_OPTION_NUMBER, "0", NULL, 0, 31536000, AT(wait),
     "Seconds for which an allocation waits for memory that other jobs use, when nothing else is "
     "left; jobs of one user are served in the order in which they began to wait.",
     NULL, 0},
    {"BFC_PLAN", BFC_OPTION_FILE, "none", "auto", 0, 0, AT(plan),
     "Follows a plan that bfcplan made of a recording of the same program: what a loop allocates "
     "gets the addresses that were planned for it. auto: the job makes its plan itself. What a "
     "plan does not foresee is served as without one.",
     NULL, 0},
    {"BFC_RECORD", BFC_OPTION_FILE, "none", NULL, 0, 0, AT(record),
     "Writes a trace of all allocations and frees to this file, for bfcreplay and "
     "bfcplan; %p in the name becomes the process id. At none nothing is recorded.",
     NULL, 0},
    {"BFC_LOG", BFC_OPTION_CHOICE, "error", "off, error, warn, info, debug", 0, 0, AT(log),
     "Sets which messages go to standard error: each level includes those before "
     "it. error: what fails. warn: what works less well than it could. info: what "
     "was decided, and memory that is given back. debug: each region and hook.",
     NULL, 0},
    {"BFC_SUMMARY", BFC_OPTION_CHOICE, "0", "0, 1, leaks", 0, 0, AT(summary),
     "At 1 the process prints a few lines at exit: calls, hit rate, driver calls "
     "saved, and peaks. leaks: also what was not freed, and which frees were invalid, with call "
     "stacks; each allocation and free takes its stack then.",
     NULL, 0},
    {"BFC_DISABLE", BFC_OPTION_FLAG, "0", NULL, 0, 0, AT(disable),
     "At 1 every call is forwarded to the driver and no pool is made; at 0 allocations"
     " are pooled.",
     NULL, BFC_OPTION_BINDING},
    {"BFC_POLICY", BFC_OPTION_CHOICE, "bfc", "bfc, tf, pytorch", 0, 0, AT(policy),
     "Chooses how blocks are placed and split: bfc is best fit with coalescing, tf "
     "follows the rules of TensorFlow's BFC allocator, and pytorch follows those of "
     "PyTorch's caching allocator.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_FREE", BFC_OPTION_CHOICE, "sync", "sync, lazy, ordered", 0, 0, AT(free_mode),
     "Sets what a free guarantees. sync: the host waits for the context, as "
     "cudaFree does. lazy: the free returns at once, and the memory is reused only "
     "after the work that was under way at the free has completed. ordered: the "
     "free returns at once, the memory can be reused at once, and the device makes "
     "later work wait.",
     NULL, BFC_OPTION_EXPERT | BFC_OPTION_BINDING},
    {"BFC_PENDING_BUDGET", BFC_OPTION_SIZE, "256M", NULL, 0, TIB, AT(pending_budget),
     "With lazy, the pool grows while at most this many bytes of freed memory may "
     "still be in use by the device; above it, an allocation waits for such memory "
     "instead, if that suffices. At 0 it waits whenever that suffices.",
     "BFC_DIRTY_BUDGET", BFC_OPTION_EXPERT},
    {"BFC_IPC", BFC_OPTION_CHOICE, "pooled", "pooled, off", 0, 0, AT(ipc),
     "Sets what a CUDA IPC handle of pooled memory is. pooled: a token that only "
     "other preloaded processes can open. off: from the first export on, "
     "allocations come from the driver and their handles are the driver's own.",
     NULL, BFC_OPTION_EXPERT | BFC_OPTION_BINDING},
    {"BFC_GROWTH", BFC_OPTION_CHOICE, "double", "double, fixed, exact, preallocate", 0, 0,
     AT(growth),
     "Sets the size of the next region that the pool takes from the driver. double: "
     "each step is twice the last (bfc: up to 32M, from there a 256th of what is "
     "reserved or more). fixed: always BFC_GROWTH_SIZE. exact: what the request "
     "needs. preallocate: BFC_PREALLOCATE at the first allocation.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_GROWTH_SIZE", BFC_OPTION_SIZE, "2M", NULL, 4 * KIB, TIB, AT(growth_size),
     "Sets the size in bytes of the first region (double) or of every region "
     "(fixed); a larger request gets a larger region.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_GROWTH_MAX", BFC_OPTION_SIZE, "1G", NULL, 4 * KIB, TIB, AT(growth_max),
     "Sets the size in bytes of the largest step of double; a larger request still "
     "gets a larger region.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_PREALLOCATE", BFC_OPTION_SHARE, "0.75", NULL, 0, 0, AT(preallocate),
     "Sets how many bytes BFC_GROWTH=preallocate takes from the driver at the first "
     "allocation.",
     NULL, BFC_OPTION_EXPERT | BFC_OPTION_BINDING},
    {"BFC_BACKING", BFC_OPTION_CHOICE, "malloc", "malloc, pages, auto", 0, 0, AT(backing),
     "Sets what is behind the pool's addresses. malloc: whole regions of the driver's "
     "cuMemAlloc. pages: memory of the driver's virtual memory management, which moves "
     "behind other addresses where free blocks are too small, or malloc on a device "
     "without it. auto: pages where the process has one device, and that has them; else "
     "malloc.",
     NULL, BFC_OPTION_EXPERT | BFC_OPTION_BINDING},
    {"BFC_SLACK", BFC_OPTION_NUMBER, "0.03", NULL, 0, 1, AT(page_slack),
     "With pages, the part of the most memory ever requested that may be reserved beyond "
     "it before free pages are moved rather than new ones made; at 0 free pages are always "
     "moved first.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_PAGE", BFC_OPTION_CHOICE, "fit", "fit, step", 0, 0, AT(page),
     "With pages, how large new ones are. fit: at most a 64th of the allocation that they are made "
     "for, but at least 2 MiB, so that most of them can move. step: one for each step of growth, "
     "which takes far fewer driver calls, for programs whose allocations repeat; others may hold "
     "much more.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_SPLIT_RATIO", BFC_OPTION_NUMBER, "none", NULL, 1, 1000000, AT(split_ratio),
     "A free block is split if it is at least this many times as large as the "
     "request; at none the policy decides (tf: 2).",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_SPLIT_SLACK", BFC_OPTION_AMOUNT, "none", NULL, 0, 0, AT(split_slack),
     "A free block is split if at least this many bytes would be left over, "
     "whatever its ratio to the request; at none the policy decides (tf: 128M).",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_MAX_SPLIT", BFC_OPTION_SIZE, "none", NULL, 20 * MIB, TIB, AT(max_split),
     "Free blocks of this many bytes or more are never split, and serve only "
     "requests of nearly their own size; at none, and with pages, there is no such bound.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_ROUNDUP", BFC_OPTION_CHOICE, "0", "0, 1, 2, 4, 8, 16, 32, 64", 0, 0, AT(roundup),
     "Each power of two is divided into this many equal steps, and requests are "
     "rounded up to the next step; at 0 the policy decides (bfc: to 512 bytes and, "
     "from 64K on, to 64K).",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_BYPASS_ABOVE", BFC_OPTION_SIZE, "none", NULL, 0, TIB, AT(bypass_above),
     "Requests larger than this many bytes go to the driver and are not pooled; at "
     "none all sizes are pooled.",
     NULL, BFC_OPTION_EXPERT | BFC_OPTION_BINDING},
    {"BFC_GC_THRESHOLD", BFC_OPTION_AMOUNT, "none", NULL, 0, 0, AT(gc_threshold),
     "When the pool has reserved more bytes than this, it gives idle regions back "
     "before it grows; a fraction is of BFC_LIMIT, or of the device's memory "
     "without a limit. At none it grows without giving any back.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_TRIM_IDLE", BFC_OPTION_NUMBER, "none", NULL, 0, 31536000, AT(trim_idle),
     "A region that has been wholly free for this many seconds is given back to the "
     "driver; at none it is kept.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_YIELD", BFC_OPTION_FLAG, "1", NULL, 0, 0, AT(yield),
     "At 1 this process gives cached memory back when another preloaded process of "
     "the user runs out of memory on the same device, and asks the others to do so "
     "when it runs out itself; at 0 it does neither.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_LAST_RESORT", BFC_OPTION_WORDS, "all", "pool, contexts, jobs, wait, spill", 0, 0,
     AT(last_resort),
     "What is tried before an allocation fails, in this order. pool: waits for pending memory and "
     "gives idle regions back. contexts: the same in the process's other contexts. jobs: "
     "asks other jobs for what they cache (BFC_YIELD). wait: BFC_WAIT. spill: BFC_SPILL.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_DEEPBIND", BFC_OPTION_CHOICE, "strip", "strip, keep", 0, 0, AT(deepbind),
     "Sets what happens to the flag RTLD_DEEPBIND of dlopen. strip: it is removed, "
     "since a library opened with it would bypass the pool. keep: it is left alone.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_RUNTIME", BFC_OPTION_CHOICE, "auto", "auto, on, off", 0, 0, AT(runtime),
     "Sets whether cudaMalloc and cudaFree of a shared CUDA 12 or 13 runtime are "
     "answered before the runtime is entered. on: always. off: never. auto: unless a "
     "profiler may be watching.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_STATS", BFC_OPTION_FLAG, "1", NULL, 0, 0, AT(stats),
     "At 1 the process publishes live counters in /dev/shm for bfcstat; at 0 it "
     "publishes nothing, and neither yields memory nor trims idle regions.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_STACKS", BFC_OPTION_CHOICE, "sample", "off, sample, all", 0, 0, AT(stacks),
     "Sets of which allocations the call stack is taken, for bfcstat who. off: of none. sample: of "
     "so few that it costs next to nothing, from which the rest is estimated. all: of each.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_TAGS", BFC_OPTION_CHOICE, "off", "off, nvtx", 0, 0, AT(tags),
     "nvtx: allocations are tagged with the program's NVTX ranges, for bfcstat who. The library "
     "sets NVTX_INJECTION64_PATH for that, and hands the ranges on to what was set there. Only the "
     "environment counts, no settings file.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_LEAK_EXIT", BFC_OPTION_WHOLE, "0", NULL, 0, 255, AT(leak_exit),
     "The exit status of a process that comes to its normal end with blocks that are not freed; "
     "above 0 it implies BFC_SUMMARY=leaks, which names them. At 0 the exit status is always the "
     "process's own.",
     NULL, BFC_OPTION_EXPERT},
    {"BFC_STRICT", BFC_OPTION_FLAG, "0", NULL, 0, 0, AT(strict),
     "At 1 a malformed or unknown variable makes every allocation fail; at 0 it is "
     "reported, and its default is used or nothing is pooled.",
     NULL, BFC_OPTION_EXPERT | BFC_OPTION_BINDING},
    {"BFC_ONLY", BFC_OPTION_PATTERNS, "none", NULL, 0, 0, AT(only),
     "Names the executables in which pooling is on (python*:train); it is off in "
     "all others. At none it is on in all.",
     NULL, BFC_OPTION_EXPERT | BFC_OPTION_BINDING},
    {"BFC_NOT", BFC_OPTION_PATTERNS, "none", NULL, 0, 0, AT(not_in),
     "Names the executables in which pooling is off; at none this turns it off nowhere.", NULL,
     BFC_OPTION_EXPERT | BFC_OPTION_BINDING},
};
const size_t bfc_option_count = sizeof bfc_option_table / sizeof bfc_option_table[0];
_Static_assert(sizeof bfc_option_table / sizeof bfc_option_table[0] <= 64, "a bit each");

/* What BFC_MODE chooses beside the defaults. */
static const struct choice {
    enum bfc_mode mode;
    const char *name, *value;
} choices_of_modes[] = {
    {BFC_MODE_FAST, "BFC_FREE", "ordered"},
    {BFC_MODE_COMPACT, "BFC_BACKING", "auto"},
    {BFC_MODE_COMPACT, "BFC_PLAN", "auto"},
};
enum { CHOICES = sizeof choices_of_modes / sizeof choices_of_modes[0] };

static bool is_former_name(const struct bfc_option *option, const char *name) {
    return option->former && strcmp(option->former, name) == 0;
}

const struct bfc_option *bfc_option_find(const char *name) {
    for (size_t i = 0; i < bfc_option_count; i++)
        if (strcmp(bfc_option_table[i].name, name) == 0 ||
            is_former_name(&bfc_option_table[i], name))
            return &bfc_option_table[i];
    return NULL;
}

/* Sizes as a user writes them: in the largest unit that divides them. */
static void print_size(uint64_t bytes, char *text, size_t size) {
    static const char units[] = "KMGT";
    int unit = -1;
    while (unit < 3 && bytes != 0 && bytes % KIB == 0) {
        bytes /= KIB;
        unit++;
    }
    snprintf(text, size, unit < 0 ? "%llu" : "%llu%c", (unsigned long long)bytes,
             unit < 0 ? 0 : units[unit]);
}

static bool may_be_none(const struct bfc_option *option) {
    return strcmp(option->standard, "none") == 0;
}

void bfc_option_describe(const struct bfc_option *option, char *text, size_t size) {
    char least[32], most[32];
    switch (option->kind) {
    case BFC_OPTION_FLAG:
        snprintf(text, size, "0 or 1");
        break;
    case BFC_OPTION_CHOICE:
        snprintf(text, size, "%s%s", strchr(option->choices, ',') ? "one of " : "",
                 option->choices);
        break;
    case BFC_OPTION_SIZE:
        print_size(option->least, least, sizeof least);
        print_size(option->most, most, sizeof most);
        snprintf(text, size, "%sa size from %s to %s, such as 2.5M",
                 may_be_none(option) ? "none or " : "", least, most);
        break;
    case BFC_OPTION_NUMBER:
        snprintf(text, size, "%sa number from %llu to %llu, such as %s",
                 may_be_none(option) ? "none or " : "", (unsigned long long)option->least,
                 (unsigned long long)option->most, option->most > 1 ? "1.5" : "0.5");
        break;
    case BFC_OPTION_WHOLE:
        snprintf(text, size, "a whole number from %llu to %llu", (unsigned long long)option->least,
                 (unsigned long long)option->most);
        break;
    case BFC_OPTION_SHARE:
        snprintf(text, size,
                 "a size such as 2.5G, or a fraction of the device's memory above 0 and below 1");
        break;
    case BFC_OPTION_AMOUNT:
        snprintf(
            text, size,
            "none, a size such as 2.5G, or a fraction of the device's memory above 0 and below 1");
        break;
    case BFC_OPTION_FILE:
        snprintf(text, size, "none, %s%sor a file's path of 1 to 250 characters",
                 option->choices ? option->choices : "", option->choices ? ", " : "");
        break;
    case BFC_OPTION_WORDS:
        snprintf(text, size, "all, none, or some of %s, joined by commas", option->choices);
        break;
    case BFC_OPTION_PATTERNS:
        snprintf(text, size,
                 "none, or file names of up to 255 characters in all, joined by colons,"
                 " with * and ?");
        break;
    }
}

static bool parse_flag(const char *value, bool *flag) {
    if ((value[0] != '0' && value[0] != '1') || value[1] != '\0')
        return false;
    *flag = value[0] == '1';
    return true;
}

static bool parse_choice(const char *choices, const char *value, int *index) {
    size_t length = strlen(value);
    int i = 0;
    for (const char *word = choices; word; i++) {
        const char *comma = strchr(word, ',');
        size_t word_length = comma ? (size_t)(comma - word) : strlen(word);
        if (length == word_length && memcmp(word, value, length) == 0) {
            *index = i;
            return true;
        }
        word = comma ? comma + 2 : NULL;
    }
    return false;
}

static bool parse_words(const char *choices, const char *value, unsigned *bits) {
    char word[32];
    int index;
    *bits = strcmp(value, "all") == 0 ? ~0u : 0;
    if (*bits || strcmp(value, "none") == 0)
        return true;
    for (size_t length; *value; value += length + (value[length] != '\0')) {
        length = strcspn(value, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, value);
        if (length >= sizeof word || !parse_choice(choices, word, &index))
            return false;
        *bits |= 1u << index;
        if (strcmp(value + length, ",") == 0)
            return false;
    }
    return *bits;
}

/* A decimal fraction below 1, whatever the program's locale: digits after "0." or ".". */
static bool parse_fraction(const char *value, double *fraction) {
    const char *digit = value + (value[0] == '0');
    if (*digit++ != '.')
        return false;
    double result = 0, place = 1;
    const char *first = digit;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        result += (*digit - '0') * (place /= 10);
    if (digit == first || *digit != '\0' || result <= 0)
        return false;
    *fraction = result;
    return true;
}

static bool parse_amount(const char *value, struct bfc_amount *amount) {
    struct bfc_amount parsed = {.bytes = UINT64_MAX};
    if (strcmp(value, "none") != 0 && !parse_fraction(value, &parsed.fraction) &&
        (!bfc_bytes_parse(value, UINT64_MAX, &parsed.bytes) || parsed.bytes == 0))
        return false;
    *amount = parsed;
    return true;
}

/* A size or a fraction, 0 too. */
static bool parse_share(const char *value, struct bfc_amount *amount) {
    struct bfc_amount parsed = {.bytes = UINT64_MAX};
    if (!parse_fraction(value, &parsed.fraction) &&
        !bfc_bytes_parse(value, UINT64_MAX, &parsed.bytes))
        return false;
    *amount = parsed;
    return true;
}

/* A decimal number, whatever the program's locale, with at most nine digits before the point. */
static bool parse_number(const char *value, const struct bfc_option *option, double *number) {
    double result = 0, place = 1;
    const char *digit = value;
    if (may_be_none(option) && strcmp(value, "none") == 0) {
        *number = -1;
        return true;
    }
    for (; *digit >= '0' && *digit <= '9' && digit - value < 9; digit++)
        result = result * 10 + (*digit - '0');
    if (digit == value)
        return false;
    if (*digit == '.')
        for (digit++; *digit >= '0' && *digit <= '9'; digit++)
            result += (*digit - '0') * (place /= 10);
    if (*digit != '\0' || result < (double)option->least || result > (double)option->most)
        return false;
    *number = result;
    return true;
}

static bool parse_patterns(const char *value, char *patterns, size_t size) {
    if (strlen(value) >= size)
        return false;
    strcpy(patterns, strcmp(value, "none") == 0 ? "" : value);
    return true;
}

static bool set_value(struct bfc_options *options, const struct bfc_option *option,
                      const char *value) {
    void *field = (char *)options + option->offset;
    uint64_t bytes;
    switch (option->kind) {
    case BFC_OPTION_FLAG:
        return parse_flag(value, field);
    case BFC_OPTION_CHOICE:
        return parse_choice(option->choices, value, field);
    case BFC_OPTION_NUMBER:
        return parse_number(value, option, field);
    case BFC_OPTION_WHOLE:
        return !strchr(value, '.') && parse_number(value, option, field);
    case BFC_OPTION_SHARE:
        return parse_share(value, field);
    case BFC_OPTION_SIZE:
        if (may_be_none(option) && strcmp(value, "none") == 0) {
            *(uint64_t *)field = UINT64_MAX;
            return true;
        }
        if (!bfc_bytes_parse(value, option->most, &bytes) || bytes < option->least)
            return false;
        *(uint64_t *)field = bytes;
        return true;
    case BFC_OPTION_AMOUNT:
        return parse_amount(value, field);
    case BFC_OPTION_WORDS:
        return parse_words(option->choices, value, field);
    case BFC_OPTION_FILE:
        return value[0] && parse_patterns(value, field, 251);
    case BFC_OPTION_PATTERNS:
        return parse_patterns(value, field, sizeof options->only);
    }
    return false;
}

static uint64_t bit_of(const struct bfc_option *option) {
    return UINT64_C(1) << (option - bfc_option_table);
}

/* What the mode chooses, where nothing else was said; defaults first, since an earlier mode may
 * have chosen other settings. */
static void apply_mode(struct bfc_options *options) {
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < CHOICES; i++) {
            const struct choice *choice = &choices_of_modes[i];
            const struct bfc_option *option = bfc_option_find(choice->name);
            bool chosen = (int)choice->mode == options->mode;
            if (!(options->given & bit_of(option)) && (pass == 0 || chosen))
                set_value(options, option, pass == 0 ? option->standard : choice->value);
        }
}

bool bfc_option_set(struct bfc_options *options, const struct bfc_option *option,
                    const char *value) {
    if (!set_value(options, option, value)) {
        options->unread |= bit_of(option);
        return false;
    }
    options->given |= bit_of(option);
    options->unread &= ~bit_of(option);
    if (option->offset == AT(mode))
        apply_mode(options);
    return true;
}

void bfc_options_init(struct bfc_options *options) {
    memset(options, 0, sizeof *options);
    for (size_t i = 0; i < bfc_option_count; i++)
        set_value(options, &bfc_option_table[i], bfc_option_table[i].standard);
}

bool bfc_option_is_of_mode(const struct bfc_options *options, const struct bfc_option *option) {
    for (unsigned i = 0; i < CHOICES; i++)
        if (strcmp(choices_of_modes[i].name, option->name) == 0 &&
            (int)choices_of_modes[i].mode == options->mode)
            return !(options->given & bit_of(option));
    return false;
}

const char *bfc_options_unread(const struct bfc_options *options) {
    for (size_t i = 0; i < bfc_option_count; i++)
        if (bfc_option_table[i].marks & BFC_OPTION_BINDING && options->unread >> i & 1)
            return bfc_option_table[i].name;
    return NULL;
}

struct complaint {
    void (*complain)(void *context, const char *line);
    void *context;
    char line[512];
};

/* A variable of the environment has the last word: what it says is not said better elsewhere. */
static void complain_malformed(struct complaint *complaint, const struct bfc_options *options,
                               const struct bfc_option *option, const char *value) {
    char accepted[160], held[64];
    size_t size = sizeof complaint->line;
    bfc_option_describe(option, accepted, sizeof accepted);
    bfc_option_print(options, option->name, held, sizeof held);
    int used =
        snprintf(complaint->line, size, "bfcpreload: %s=%.128s is not accepted: expected %s; ",
                 option->name, value, accepted);
    if (option->marks & BFC_OPTION_BINDING)
        snprintf(complaint->line + used, size - (size_t)used,
                 "this process is not pooled, every call goes to the driver");
    else
        snprintf(complaint->line + used, size - (size_t)used, "%s%s holds",
                 strcmp(held, option->standard) == 0 ? "the default " : "", held);
    complaint->complain(complaint->context, complaint->line);
}

/* Up to three letters off, and at most a third of its own. */
const char *bfc_option_nearest(const char *name) {
    const char *nearest = NULL;
    unsigned least = 4;
    for (size_t i = 0; i < bfc_option_count; i++) {
        unsigned away = bfc_name_distance(name, bfc_option_table[i].name);
        if (away < least && 3 * away <= strlen(bfc_option_table[i].name)) {
            least = away;
            nearest = bfc_option_table[i].name;
        }
    }
    return nearest;
}

static void complain_unknown(struct complaint *complaint, const char *name, const char *value) {
    const char *nearest = bfc_option_nearest(name);
    snprintf(complaint->line, sizeof complaint->line,
             "bfcpreload: %.64s=%.64s: no such variable%s%s%s", name, value,
             nearest ? "; did you mean " : "; bfcrun --help lists them", nearest ? nearest : "",
             nearest ? "?" : "");
    complaint->complain(complaint->context, complaint->line);
}

/* What scripts and tests of ours read. */
static bool is_of_our_builds(const char *name) {
    return strcmp(name, "BFC_BUILD") == 0 || strcmp(name, "BFC_REFUSALS") == 0 ||
           strncmp(name, "BFC_TEST_", 9) == 0 || strncmp(name, "BFC_STRESS_", 11) == 0;
}

/*
 * Reads one NAME=value that begins with BFC_, if NAME is a former name (`former`) or is none
 * (otherwise). False when it is unknown or malformed.
 */
static bool read_variable(struct bfc_options *options, const char *variable, bool former,
                          struct complaint *complaint) {
    const char *equals = strchr(variable, '=');
    if (!equals)
        return true;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(equals - variable), variable);
    const struct bfc_option *option = bfc_option_find(name);
    if (former != (option && is_former_name(option, name)) || is_of_our_builds(name))
        return true;
    if (option && bfc_option_set(options, option, equals + 1))
        return true;
    if (complaint->complain) {
        if (option)
            complain_malformed(complaint, options, option, equals + 1);
        else
            complain_unknown(complaint, name, equals + 1);
    }
    return false;
}

static unsigned read_variables(struct bfc_options *options, char *const *environment, bool former,
                               struct complaint *complaint) {
    unsigned errors = 0;
    for (; environment && *environment; environment++)
        if (strncmp(*environment, "BFC_", 4) == 0 &&
            !read_variable(options, *environment, former, complaint))
            errors++;
    return errors;
}

/* ---- settings that contradict each other ---- */

static uint64_t bytes_if_size(const struct bfc_amount *amount) {
    return amount->fraction > 0 ? UINT64_MAX : amount->bytes;
}

static const char *find_contradiction(const struct bfc_options *options) {
    const struct bfc_amount *limit = &options->limit, *first = &options->preallocate;
    bool preallocates = options->growth == 3, doubles = options->growth == 0;
    if (doubles && options->policy == 0 && options->growth_size > options->growth_max)
        return "BFC_GROWTH_SIZE is above BFC_GROWTH_MAX: accepted is at most BFC_GROWTH_MAX, which "
               "is used for every step";
    if (preallocates && bytes_if_size(first) != UINT64_MAX &&
        bytes_if_size(first) > bytes_if_size(limit))
        return "BFC_PREALLOCATE is above BFC_LIMIT: accepted is at most BFC_LIMIT, which is used";
    if (preallocates && first->fraction > limit->fraction && limit->fraction > 0)
        return "BFC_PREALLOCATE is above BFC_LIMIT: accepted is at most BFC_LIMIT, which is used";
    if (options->trim_idle >= 0 && !options->stats)
        return "BFC_TRIM_IDLE needs the helper thread that comes with BFC_STATS=1: with "
               "BFC_STATS=0 idle regions are not given back";
    if (options->wait > 0 && !options->stats)
        return "BFC_WAIT needs the queue that comes with BFC_STATS=1: with BFC_STATS=0 no "
               "allocation waits for other jobs";
    if (options->max_split <= options->growth_size && options->growth == 1)
        return "BFC_GROWTH_SIZE is not below BFC_MAX_SPLIT: accepted with BFC_GROWTH=fixed is less "
               "than BFC_MAX_SPLIT; regions for smaller blocks stay below it";
    return NULL;
}

static unsigned complain_contradiction(const struct bfc_options *options,
                                       struct complaint *complaint) {
    const char *contradiction = find_contradiction(options);
    if (!contradiction)
        return 0;
    snprintf(complaint->line, sizeof complaint->line, "bfcpreload: %s", contradiction);
    if (complaint->complain)
        complaint->complain(complaint->context, complaint->line);
    return 1;
}

unsigned bfc_options_read(struct bfc_options *options, char *const *environment,
                          void (*complain)(void *context, const char *line), void *context) {
    struct complaint complaint = {.complain = complain, .context = context};
    unsigned errors = read_variables(options, environment, true, &complaint);
    errors += read_variables(options, environment, false, &complaint);
    if (options->leak_exit > 0)
        options->summary = BFC_SUMMARY_LEAKS;
    return errors + complain_contradiction(options, &complaint);
}

static void print_choice(const char *choices, int index, char *text, size_t size) {
    while (index-- > 0)
        choices = strchr(choices, ',') + 2;
    snprintf(text, size, "%.*s", (int)strcspn(choices, ","), choices);
}

static void print_words(const char *choices, unsigned bits, char *text, size_t size) {
    size_t used = 0;
    char word[32];
    snprintf(text, size, "%s", bits == ~0u ? "all" : "none");
    for (int i = 0; bits != ~0u && bits >> i && used < size; i++)
        if (bits >> i & 1) {
            print_choice(choices, i, word, sizeof word);
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", word);
        }
}

static void print_size_or_none(uint64_t bytes, char *text, size_t size) {
    if (bytes == UINT64_MAX)
        snprintf(text, size, "none");
    else
        print_size(bytes, text, size);
}

/* To a millionth, without the locale's point. */
static void print_number(double number, char *text, size_t size) {
    if (number < 0) {
        snprintf(text, size, "none");
        return;
    }
    uint64_t millionths = (uint64_t)(number * 1e6 + 0.5);
    int length = snprintf(text, size, "%llu.%06llu", (unsigned long long)(millionths / 1000000),
                          (unsigned long long)(millionths % 1000000));
    while (text[length - 1] == '0')
        text[--length] = '\0';
    if (text[length - 1] == '.')
        text[length - 1] = '\0';
}

static void print_amount(const struct bfc_amount *amount, char *text, size_t size) {
    if (amount->fraction > 0)
        snprintf(text, size, "%g", amount->fraction);
    else if (amount->bytes == UINT64_MAX)
        snprintf(text, size, "none");
    else
        print_size(amount->bytes, text, size);
}

static void print_value(const struct bfc_options *options, const struct bfc_option *option,
                        char *text, size_t size) {
    const void *field = (const char *)options + option->offset;
    switch (option->kind) {
    case BFC_OPTION_FLAG:
        snprintf(text, size, "%d", *(const bool *)field);
        break;
    case BFC_OPTION_CHOICE:
        print_choice(option->choices, *(const int *)field, text, size);
        break;
    case BFC_OPTION_SIZE:
        print_size_or_none(*(const uint64_t *)field, text, size);
        break;
    case BFC_OPTION_NUMBER:
    case BFC_OPTION_WHOLE:
        print_number(*(const double *)field, text, size);
        break;
    case BFC_OPTION_SHARE:
    case BFC_OPTION_AMOUNT:
        print_amount(field, text, size);
        break;
    case BFC_OPTION_WORDS:
        print_words(option->choices, *(const unsigned *)field, text, size);
        break;
    case BFC_OPTION_FILE:
    case BFC_OPTION_PATTERNS:
        snprintf(text, size, "%s", *(const char *)field ? (const char *)field : "none");
        break;
    }
}

void bfc_option_print(const struct bfc_options *options, const char *name, char *text,
                      size_t size) {
    print_value(options, bfc_option_find(name), text, size);
}

void bfc_options_print(const struct bfc_options *options, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < bfc_option_count && used < size; i++) {
        char value[256];
        print_value(options, &bfc_option_table[i], value, sizeof value);
        used +=
            (size_t)snprintf(text + used, size - used, "%s=%s\n", bfc_option_table[i].name, value);
    }
}

bool bfc_patterns_match(const char *patterns, const char *name) {
    char pattern[256];
    while (*patterns) {
        size_t length = strcspn(patterns, ":");
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, patterns);
        if (fnmatch(pattern, name, 0) == 0)
            return true;
        patterns += length + (patterns[length] == ':');
    }
    return false;
}
