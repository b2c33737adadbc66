/* The environment variables BFC_...: parsing and printing their values. */
#include "interpose/config/options.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/decimal.h"
#include "base/edit_distance.h"

/* Values that BFC_MODE chooses in place of the defaults of other variables. */
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
        bfc_bytes_print(option->least, least, sizeof least);
        bfc_bytes_print(option->most, most, sizeof most);
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
    case BFC_OPTION_AMOUNT:
        snprintf(text, size,
                 "%sa size such as 2.5G, or a fraction of the device's memory above 0 and below 1",
                 option->kind == BFC_OPTION_AMOUNT ? "none, " : "");
        break;
    case BFC_OPTION_FILE:
        snprintf(text, size, "none, %s%sor a path of 1 to 250 characters",
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

/* Reads a decimal fraction below 1, which begins with "0." or ".". */
static bool parse_fraction(const char *value, double *fraction) {
    double number;
    bool is_fraction = value[value[0] == '0'] == '.' && bfc_decimal_parse(value, &number);
    if (is_fraction && number > 0)
        *fraction = number;
    return is_fraction && number > 0;
}

/* An amount may be none but not 0; a share (`is_share`) may be 0 but not none. */
static bool parse_amount(const char *value, bool is_share, struct bfc_amount *amount) {
    struct bfc_amount parsed = {.bytes = UINT64_MAX};
    bool is_none = !is_share && strcmp(value, "none") == 0;
    if (!is_none && !parse_fraction(value, &parsed.fraction) &&
        (!bfc_bytes_parse(value, UINT64_MAX, &parsed.bytes) || (parsed.bytes == 0 && !is_share)))
        return false;
    *amount = parsed;
    return true;
}

/* False: the value is malformed or outside the option's range. */
static bool parse_number(const char *value, const struct bfc_option *option, double *number) {
    double parsed = -1;
    bool is_none = may_be_none(option) && strcmp(value, "none") == 0;
    if (!is_none && (value[0] == '.' || !bfc_decimal_parse(value, &parsed) ||
                     parsed < (double)option->least || parsed > (double)option->most))
        return false;
    *number = parsed;
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
    case BFC_OPTION_SIZE:
        if (may_be_none(option) && strcmp(value, "none") == 0) {
            *(uint64_t *)field = UINT64_MAX;
            return true;
        }
        if (!bfc_bytes_parse(value, option->most, &bytes) || bytes < option->least)
            return false;
        *(uint64_t *)field = bytes;
        return true;
    case BFC_OPTION_SHARE:
    case BFC_OPTION_AMOUNT:
        return parse_amount(value, option->kind == BFC_OPTION_SHARE, field);
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

static void choose_unless_given(struct bfc_options *options, const char *name, const char *value) {
    const struct bfc_option *option = bfc_option_find(name);
    if (!(options->given & bit_of(option)))
        set_value(options, option, value);
}

void bfc_options_choose_for_sleep(struct bfc_options *options) {
    if (options->sleep_idle < 0 && options->sleep_quantum < 0)
        return;
    choose_unless_given(options, "BFC_GATE", "on");
    choose_unless_given(options, "BFC_BACKING", "auto");
    if (options->sleep_quantum >= 0)
        choose_unless_given(options, "BFC_WAIT", "86400");
}

/* Sets the options that BFC_MODE can choose, except those that have a value of their own. They
 * first get their defaults, since an earlier BFC_MODE may have chosen other values, and then what
 * the present mode chooses. */
static void apply_mode(struct bfc_options *options) {
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < CHOICES; i++) {
            const struct choice *choice = &choices_of_modes[i];
            const struct bfc_option *option = bfc_option_find(choice->name);
            bool chosen = (int)choice->mode == options->mode;
            if (pass == 0 || chosen)
                choose_unless_given(options, choice->name,
                                    pass == 0 ? option->standard : choice->value);
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
    if (option->offset == offsetof(struct bfc_options, mode))
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
    void (*complain)(void *context, const char *line); /* may be NULL */
    void *context;
};

static void write_complaint(const struct complaint *complaint, const char *format, ...)
    PRINTF_LIKE(2, 3);

static void write_complaint(const struct complaint *complaint, const char *format, ...) {
    char line[512] = "bfcpreload: ";
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - used, format, arguments);
    va_end(arguments);
    if (complaint->complain)
        complaint->complain(complaint->context, line);
}

/* Complains about a value that is not accepted, and says which value holds instead: the default, or
 * that of a settings file, which has been read before. */
static void complain_malformed(const struct complaint *complaint, const struct bfc_options *options,
                               const struct bfc_option *option, const char *value) {
    char accepted[160], held[64];
    bfc_option_describe(option, accepted, sizeof accepted);
    bfc_option_print(options, option->name, held, sizeof held);
    bool binding = option->marks & BFC_OPTION_BINDING;
    const char *kind = strcmp(held, option->standard) == 0 ? "the default " : "";
    write_complaint(complaint, "%s=%.128s is not accepted: expected %s; %s%s%s", option->name,
                    value, accepted,
                    binding ? "this process is not pooled, every call goes to the driver" : kind,
                    binding ? "" : held, binding ? "" : " holds");
}

/* A name is suggested if it differs from `name` in at most three letters, and in at most a third of
 * its length. */
const char *bfc_option_nearest(const char *name) {
    const char *nearest = NULL;
    uint64_t least = 4;
    for (size_t i = 0; i < bfc_option_count; i++) {
        uint64_t away = bfc_edit_distance(name, bfc_option_table[i].name);
        if (away < least && 3 * away <= strlen(bfc_option_table[i].name)) {
            least = away;
            nearest = bfc_option_table[i].name;
        }
    }
    return nearest;
}

static void complain_unknown(const struct complaint *complaint, const char *name,
                             const char *value) {
    const char *nearest = bfc_option_nearest(name);
    write_complaint(complaint, "%.64s=%.64s: no such variable%s%s%s", name, value,
                    nearest ? "; did you mean " : "; bfcrun --help lists them",
                    nearest ? nearest : "", nearest ? "?" : "");
}

/* Whether a variable is one that only this project's scripts and tests read, so that the library
 * ignores it. */
static bool is_of_our_builds(const char *name) {
    return strcmp(name, "BFC_BUILD") == 0 || strcmp(name, "BFC_REFUSALS") == 0 ||
           strncmp(name, "BFC_TEST_", 9) == 0 || strncmp(name, "BFC_STRESS_", 11) == 0;
}

/* Reads one NAME=value of the environment. `former`: reads only former names of options; otherwise
 * only names that are not former ones. False: the variable is unknown or malformed. */
static bool read_variable(struct bfc_options *options, const char *variable, bool former,
                          const struct complaint *complaint) {
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
    if (option)
        complain_malformed(complaint, options, option, equals + 1);
    else
        complain_unknown(complaint, name, equals + 1);
    return false;
}

static unsigned read_variables(struct bfc_options *options, char *const *environment, bool former,
                               const struct complaint *complaint) {
    unsigned errors = 0;
    for (; environment && *environment; environment++)
        if (strncmp(*environment, "BFC_", 4) == 0 &&
            !read_variable(options, *environment, former, complaint))
            errors++;
    return errors;
}

/* Whether `amount` is above `limit` on a device of any size. */
static bool is_above(const struct bfc_amount *amount, const struct bfc_amount *limit) {
    if (amount->fraction > 0)
        return limit->fraction > 0 && amount->fraction > limit->fraction;
    return limit->fraction <= 0 && amount->bytes > limit->bytes;
}

/* Whether sleep is asked for, but the gate or pages, which it needs, are turned off. */
static bool sleeps_in_vain(const struct bfc_options *options) {
    bool regions = options->backing == BFC_BACKING_MALLOC &&
                   options->given & bit_of(bfc_option_find("BFC_BACKING"));
    return (options->sleep_idle >= 0 || options->sleep_quantum >= 0) &&
           (options->gate == BFC_GATE_OFF || options->gate == BFC_GATE_0 || regions);
}

static const char *find_contradiction(const struct bfc_options *options) {
    bool preallocates = options->growth == 3, doubles = options->growth == 0;
    if (doubles && options->policy == 0 && options->growth_size > options->growth_max)
        return "BFC_GROWTH_SIZE is above BFC_GROWTH_MAX: accepted is at most BFC_GROWTH_MAX, which "
               "is used for every step";
    if (preallocates && is_above(&options->preallocate, &options->limit))
        return "BFC_PREALLOCATE is above BFC_LIMIT: accepted is at most BFC_LIMIT, which is used";
    if (options->trim_idle >= 0 && !options->stats)
        return "BFC_TRIM_IDLE needs the helper thread that comes with BFC_STATS=1: with "
               "BFC_STATS=0 idle regions are not given back";
    if ((options->sleep_idle >= 0 || options->sleep_quantum >= 0) && !options->stats)
        return "BFC_SLEEP_IDLE and BFC_SLEEP_QUANTUM need BFC_STATS=1: with BFC_STATS=0 the job "
               "does not fall asleep";
    if (sleeps_in_vain(options))
        return "BFC_SLEEP_IDLE and BFC_SLEEP_QUANTUM need BFC_GATE=on, and BFC_BACKING=pages or "
               "auto: without these the job does not fall asleep";
    if (options->wait > 0 && !options->stats)
        return "BFC_WAIT needs the queue that comes with BFC_STATS=1: with BFC_STATS=0 no "
               "allocation waits for other jobs";
    if (options->max_split <= options->growth_size && options->growth == 1)
        return "BFC_GROWTH_SIZE is not below BFC_MAX_SPLIT: accepted with BFC_GROWTH=fixed is less "
               "than BFC_MAX_SPLIT; regions for smaller blocks stay below it";
    return NULL;
}

unsigned bfc_options_read(struct bfc_options *options, char *const *environment,
                          void (*complain)(void *context, const char *line), void *context) {
    struct complaint complaint = {.complain = complain, .context = context};
    unsigned errors = read_variables(options, environment, true, &complaint);
    errors += read_variables(options, environment, false, &complaint);
    if (options->leak_exit > 0)
        options->summary = BFC_SUMMARY_LEAKS;
    const char *contradiction = find_contradiction(options);
    if (contradiction)
        write_complaint(&complaint, "%s", contradiction);
    return errors + (contradiction != NULL);
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
        bfc_bytes_print(bytes, text, size);
}

/* Writes a number rounded to a millionth, with a decimal point whatever the program's locale. */
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
    else
        print_size_or_none(amount->bytes, text, size);
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
