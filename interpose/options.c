/* The BFC_ variables: table, parser, printer. */
#include "interpose/options.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

#define AT(field) offsetof(struct bfc_options, field)

const struct bfc_option bfc_option_table[] = {
    {"BFC_DISABLE", BFC_OPTION_FLAG, "0", NULL, 0, 0, AT(disable), "forward everything"},
    {"BFC_POLICY", BFC_OPTION_CHOICE, "bfc", "bfc, tf, pytorch", 0, 0, AT(policy),
     "how blocks are placed: our own way, TensorFlow's or PyTorch's"},
    {"BFC_FREE", BFC_OPTION_CHOICE, "sync", "sync, lazy, ordered", 0, 0, AT(free_mode),
     "what a free guarantees: sync waits as the real one does, lazy reuses memory only when its "
     "work "
     "is complete, ordered at once and makes the device wait"},
    {"BFC_DIRTY_BUDGET", BFC_OPTION_SIZE, "256M", NULL, 0, TIB, AT(dirty_budget),
     "lazy: freed but still busy memory up to which the pool grows rather than waits"},
    {"BFC_IPC", BFC_OPTION_CHOICE, "pooled", "pooled, off", 0, 0, AT(ipc),
     "what other processes are given of pooled memory: tokens, which preloaded importers "
     "understand, or, from the first export on, allocations of the driver's own"},
    {"BFC_GROWTH", BFC_OPTION_CHOICE, "double", "double, fixed, exact, preallocate", 0, 0,
     AT(growth),
     "how the pool grows: doubling steps, steps of one size, what is asked for, or much at once"},
    {"BFC_GROWTH_SIZE", BFC_OPTION_SIZE, "2M", NULL, 4 * KIB, TIB, AT(growth_size),
     "first (double) or every (fixed) region"},
    {"BFC_GROWTH_MAX", BFC_OPTION_SIZE, "1G", NULL, 4 * KIB, TIB, AT(growth_max),
     "largest step of double"},
    {"BFC_PREALLOCATE", BFC_OPTION_SHARE, "0.75", NULL, 0, 0, AT(preallocate),
     "what preallocate takes at the first allocation"},
    {"BFC_LIMIT", BFC_OPTION_AMOUNT, "none", NULL, 0, 0, AT(limit),
     "most that this process may reserve on a device"},
    {"BFC_RESERVE", BFC_OPTION_SHARE, "0", NULL, 0, 0, AT(reserve),
     "device memory that is always left to others"},
    {"BFC_SPLIT_RATIO", BFC_OPTION_NUMBER, "none", NULL, 1, 1000000, AT(split_ratio),
     "a block so many times as large as the request is split; none: as the policy does (tf: 2)"},
    {"BFC_SPLIT_SLACK", BFC_OPTION_AMOUNT, "none", NULL, 0, 0, AT(split_slack),
     "and a block that leaves so much; none: as the policy does (tf: 128M)"},
    {"BFC_MAX_SPLIT", BFC_OPTION_SIZE, "none", NULL, 20 * MIB, TIB, AT(max_split),
     "blocks from this size on are not split"},
    {"BFC_ROUNDUP", BFC_OPTION_CHOICE, "0", "0, 1, 2, 4, 8, 16, 32, 64", 0, 0, AT(roundup),
     "divisions of each power of two that sizes are rounded up to"},
    {"BFC_BYPASS_ABOVE", BFC_OPTION_SIZE, "none", NULL, 0, TIB, AT(bypass_above),
     "larger requests go to the driver"},
    {"BFC_GC_THRESHOLD", BFC_OPTION_AMOUNT, "none", NULL, 0, 0, AT(gc_threshold),
     "share of the limit above which idle regions go back before the pool grows"},
    {"BFC_TRIM_IDLE", BFC_OPTION_NUMBER, "none", NULL, 0, 31536000, AT(trim_idle),
     "seconds after which a wholly free region goes back"},
    {"BFC_YIELD", BFC_OPTION_FLAG, "1", NULL, 0, 0, AT(yield),
     "give cached memory back when another preloaded process on the device runs out, and ask "
     "others"},
    {"BFC_DEEPBIND", BFC_OPTION_CHOICE, "strip", "strip, keep", 0, 0, AT(deepbind),
     "RTLD_DEEPBIND in dlopen, by which a library would get past the pool"},
    {"BFC_RUNTIME", BFC_OPTION_CHOICE, "auto", "auto, on, off", 0, 0, AT(runtime),
     "cudaMalloc and cudaFree of CUDA 12 and 13 answered before the runtime is entered: unless a "
     "profiler could be watching (auto), always, or never"},
    {"BFC_RECORD", BFC_OPTION_FILE, "none", NULL, 0, 0, AT(record),
     "file to record the trace into, for bfcreplay and bfcplan; %p in it is the process's id"},
    {"BFC_STATS", BFC_OPTION_FLAG, "1", NULL, 0, 0, AT(stats), "publish the segment"},
    {"BFC_LOG", BFC_OPTION_CHOICE, "error", "off, error, warn, info, debug", 0, 0, AT(log),
     "what is said on standard error"},
    {"BFC_SUMMARY", BFC_OPTION_FLAG, "0", NULL, 0, 0, AT(summary),
     "some lines on standard error at exit: calls, hits, what was saved, peaks"},
    {"BFC_STRICT", BFC_OPTION_FLAG, "0", NULL, 0, 0, AT(strict),
     "a malformed variable fails the first allocation"},
    {"BFC_ONLY", BFC_OPTION_PATTERNS, "none", NULL, 0, 0, AT(only),
     "executables in which to be active, and in no other (python*:train)"},
    {"BFC_NOT", BFC_OPTION_PATTERNS, "none", NULL, 0, 0, AT(not_in),
     "executables in which not to be active"},
};
const size_t bfc_option_count = sizeof bfc_option_table / sizeof bfc_option_table[0];

void bfc_options_init(struct bfc_options *options) {
    memset(options, 0, sizeof *options);
    for (size_t i = 0; i < bfc_option_count; i++)
        bfc_option_set(options, &bfc_option_table[i], bfc_option_table[i].standard);
}

const struct bfc_option *bfc_option_find(const char *name) {
    for (size_t i = 0; i < bfc_option_count; i++)
        if (strcmp(bfc_option_table[i].name, name) == 0)
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
        snprintf(text, size, "%sa size from %s to %s, in bytes or with K, M, G, T",
                 may_be_none(option) ? "none or " : "", least, most);
        break;
    case BFC_OPTION_NUMBER:
        snprintf(text, size, "none or a number from %llu to %llu, such as 1.5",
                 (unsigned long long)option->least, (unsigned long long)option->most);
        break;
    case BFC_OPTION_SHARE:
        snprintf(text, size,
                 "a size in bytes or with K, M, G, T, or a fraction of the device's memory above 0 "
                 "and below 1");
        break;
    case BFC_OPTION_AMOUNT:
        snprintf(text, size,
                 "none, a size in bytes or with K, M, G, T, or a fraction of the device's memory "
                 "above 0 and below 1");
        break;
    case BFC_OPTION_FILE:
        snprintf(text, size, "none, or a file's path of 1 to 250 characters");
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

static bool parse_size(const char *value, uint64_t *bytes) {
    if (value[0] < '0' || value[0] > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (errno)
        return false;
    int shift = 0;
    switch (*end) {
    case 'K':
    case 'k':
        shift = 10;
        break;
    case 'M':
    case 'm':
        shift = 20;
        break;
    case 'G':
    case 'g':
        shift = 30;
        break;
    case 'T':
    case 't':
        shift = 40;
        break;
    default:
        break;
    }
    end += shift != 0;
    if (*end != '\0' || number > UINT64_MAX >> shift)
        return false;
    *bytes = (uint64_t)number << shift;
    return true;
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
        (!parse_size(value, &parsed.bytes) || parsed.bytes == 0))
        return false;
    *amount = parsed;
    return true;
}

/* A size or a fraction, 0 too. */
static bool parse_share(const char *value, struct bfc_amount *amount) {
    struct bfc_amount parsed = {.bytes = UINT64_MAX};
    if (!parse_fraction(value, &parsed.fraction) && !parse_size(value, &parsed.bytes))
        return false;
    *amount = parsed;
    return true;
}

/* A decimal number, whatever the program's locale, with at most nine digits before the point. */
static bool parse_number(const char *value, const struct bfc_option *option, double *number) {
    double result = 0, place = 1;
    const char *digit = value;
    if (strcmp(value, "none") == 0) {
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

bool bfc_option_set(struct bfc_options *options, const struct bfc_option *option,
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
    case BFC_OPTION_SHARE:
        return parse_share(value, field);
    case BFC_OPTION_SIZE:
        if (may_be_none(option) && strcmp(value, "none") == 0) {
            *(uint64_t *)field = UINT64_MAX;
            return true;
        }
        if (!parse_size(value, &bytes) || bytes < option->least || bytes > option->most)
            return false;
        *(uint64_t *)field = bytes;
        return true;
    case BFC_OPTION_AMOUNT:
        return parse_amount(value, field);
    case BFC_OPTION_FILE:
        return value[0] && parse_patterns(value, field, 251);
    case BFC_OPTION_PATTERNS:
        return parse_patterns(value, field, sizeof options->only);
    }
    return false;
}

struct complaint {
    void (*complain)(void *context, const char *line);
    void *context;
    char line[512];
};

static void complain_malformed(struct complaint *complaint, const struct bfc_option *option,
                               const char *value) {
    char accepted[160];
    bfc_option_describe(option, accepted, sizeof accepted);
    snprintf(complaint->line, sizeof complaint->line,
             "bfcpreload: %s=%.128s is not accepted: expected %s; the default %s holds",
             option->name, value, accepted, option->standard);
    complaint->complain(complaint->context, complaint->line);
}

static void complain_unknown(struct complaint *complaint, const char *name, const char *value) {
    size_t used =
        (size_t)snprintf(complaint->line, sizeof complaint->line,
                         "bfcpreload: %.64s=%.64s: no such variable; known are", name, value);
    for (size_t i = 0; i < bfc_option_count && used < sizeof complaint->line; i++)
        used += (size_t)snprintf(complaint->line + used, sizeof complaint->line - used, " %s",
                                 bfc_option_table[i].name);
    complaint->complain(complaint->context, complaint->line);
}

/* One NAME=value of the environment that begins with BFC_. True: it was fine. */
static bool read_variable(struct bfc_options *options, const char *variable,
                          struct complaint *complaint) {
    const char *equals = strchr(variable, '=');
    if (!equals)
        return true;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(equals - variable), variable);
    const struct bfc_option *option = bfc_option_find(name);
    if (option && bfc_option_set(options, option, equals + 1))
        return true;
    if (complaint->complain) {
        if (option)
            complain_malformed(complaint, option, equals + 1);
        else
            complain_unknown(complaint, name, equals + 1);
    }
    return false;
}

/* ---- settings that contradict each other ---- */

static uint64_t bytes_if_size(const struct bfc_amount *amount) {
    return amount->fraction > 0 ? UINT64_MAX : amount->bytes;
}

static const char *find_contradiction(const struct bfc_options *options) {
    const struct bfc_amount *limit = &options->limit, *first = &options->preallocate;
    bool preallocates = options->growth == 3, doubles = options->growth == 0;
    if (doubles && options->policy == 0 && options->growth_size > options->growth_max)
        return "BFC_GROWTH_SIZE is above BFC_GROWTH_MAX: accepted is a first step that is not "
               "above "
               "the largest; steps stay at BFC_GROWTH_MAX";
    if (preallocates && bytes_if_size(first) != UINT64_MAX &&
        bytes_if_size(first) > bytes_if_size(limit))
        return "BFC_PREALLOCATE is above BFC_LIMIT: accepted is one that is not; BFC_LIMIT is "
               "taken";
    if (preallocates && first->fraction > limit->fraction && limit->fraction > 0)
        return "BFC_PREALLOCATE is above BFC_LIMIT: accepted is one that is not; BFC_LIMIT is "
               "taken";
    if (options->trim_idle >= 0 && !options->stats)
        return "BFC_TRIM_IDLE needs the helper thread that comes with BFC_STATS=1: with "
               "BFC_STATS=0 "
               "no region goes back by itself";
    if (options->max_split <= options->growth_size && options->growth == 1)
        return "BFC_GROWTH_SIZE is not below BFC_MAX_SPLIT: accepted with BFC_GROWTH=fixed is one "
               "that is; regions for smaller blocks stay below BFC_MAX_SPLIT";
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
    unsigned errors = 0;
    for (; environment && *environment; environment++)
        if (strncmp(*environment, "BFC_", 4) == 0 &&
            !read_variable(options, *environment, &complaint))
            errors++;
    return errors + complain_contradiction(options, &complaint);
}

static void print_choice(const char *choices, int index, char *text, size_t size) {
    while (index-- > 0)
        choices = strchr(choices, ',') + 2;
    snprintf(text, size, "%.*s", (int)strcspn(choices, ","), choices);
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
        print_number(*(const double *)field, text, size);
        break;
    case BFC_OPTION_SHARE:
    case BFC_OPTION_AMOUNT:
        print_amount(field, text, size);
        break;
    case BFC_OPTION_FILE:
    case BFC_OPTION_PATTERNS:
        snprintf(text, size, "%s", *(const char *)field ? (const char *)field : "none");
        break;
    }
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
