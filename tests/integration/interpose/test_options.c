/* The BFC_ variables: what is accepted, what is refused, and what is said. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "interpose/config/options.h"
#include "pool/pool.h"

static bool set(struct bfc_options *options, const char *name, const char *value) {
    return bfc_option_set(options, bfc_option_find(name), value);
}

Test(options, defaults_are_accepted_values) {
    struct bfc_options options;
    for (size_t i = 0; i < bfc_option_count; i++)
        cr_expect(bfc_option_set(&options, &bfc_option_table[i], bfc_option_table[i].standard),
                  "%s", bfc_option_table[i].name);
    bfc_options_init(&options);
    cr_expect_eq(options.growth_size, 2u << 20);
    cr_expect_eq(options.limit.bytes, UINT64_MAX);
    cr_expect(options.stats);
    cr_expect_str_empty(options.only);
}

Test(options, sizes) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect(set(&options, "BFC_GROWTH_SIZE", "4M"));
    cr_expect_eq(options.growth_size, 4u << 20);
    cr_expect(set(&options, "BFC_GROWTH_SIZE", "8192k"));
    cr_expect_eq(options.growth_size, 8u << 20);
    static const char *const malformed[] = {"",
                                            "-1",
                                            "1e6",
                                            " 4M",
                                            "4  M",
                                            "4.5",
                                            "4,5M",
                                            "0x1",
                                            "M",
                                            "1K",
                                            "2T",
                                            "17E9",
                                            "99999999999999999999",
                                            "18446744073709551615T"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        cr_expect_not(set(&options, "BFC_GROWTH_SIZE", malformed[i]), "%s", malformed[i]);
        cr_expect_eq(options.growth_size, 8u << 20, "a refused value changes nothing");
    }
}

/* Off unless it is set. */
Test(options, spill) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect_eq(options.spill, 0);
    cr_expect(set(&options, "BFC_SPILL", "8G"));
    cr_expect_eq(options.spill, UINT64_C(8) << 30);
    cr_expect(set(&options, "BFC_SPILL", "0"));
    cr_expect_eq(options.spill, 0);
    static const char *const malformed[] = {"", "0.5", "none", "-1", "2T", "8GX", "8,5G"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        cr_expect_not(set(&options, "BFC_SPILL", malformed[i]), "%s", malformed[i]);
}

Test(options, amounts) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect(set(&options, "BFC_LIMIT", "0.25"));
    cr_expect_float_eq(options.limit.fraction, 0.25, 1e-12);
    cr_expect(set(&options, "BFC_LIMIT", "3G"));
    cr_expect_eq(options.limit.bytes, UINT64_C(3) << 30);
    cr_expect_float_eq(options.limit.fraction, 0, 1e-12);
    cr_expect(set(&options, "BFC_LIMIT", "none"));
    cr_expect_eq(options.limit.bytes, UINT64_MAX);
    cr_expect_not(set(&options, "BFC_LIMIT", "0"));
    cr_expect_not(set(&options, "BFC_LIMIT", "0.0"));
    cr_expect_not(set(&options, "BFC_LIMIT", "1.5"));
    cr_expect_not(set(&options, "BFC_LIMIT", "0.5x"));
}

Test(options, flags_and_choices) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect(set(&options, "BFC_GROWTH", "fixed"));
    cr_expect_eq(options.growth, 1);
    cr_expect_not(set(&options, "BFC_GROWTH", "fix"));
    cr_expect_not(set(&options, "BFC_GROWTH", ""));
    cr_expect_not(set(&options, "BFC_DISABLE", "yes"));
    cr_expect_not(set(&options, "BFC_DISABLE", "10"));
}

static void collect(void *context, const char *line) {
    strcat(context, line);
    strcat(context, "\n");
}

Test(options, complaints_name_variable_value_and_what_is_accepted) {
    char *environment[] = {"PATH=/bin", "BFC_GROWTH=huge", "BFC_FRE=sync", "BFC_DISABLE=1", NULL};
    struct bfc_options options;
    char said[4096] = "";
    bfc_options_init(&options);
    cr_assert_eq(bfc_options_read(&options, environment, collect, said), 2);
    cr_expect(options.disable);
    cr_expect(
        strstr(said, "BFC_GROWTH=huge is not accepted: expected one of double, fixed, exact"));
    cr_expect(strstr(said, "BFC_FRE=sync: no such variable; did you mean BFC_FREE?\n"));
    cr_expect(strstr(said, "BFC_FREE"));
}

Test(options, names_the_variable_that_was_meant) {
    static char *const environment[] = {"BFC_LIMT=1G", "BFC_GROWTHSIZE=1M", "BFC_POLCIY=tf",
                                        "BFC_BANANA=1", NULL};
    struct bfc_options options;
    char said[8192] = "";
    bfc_options_init(&options);
    cr_expect_eq(bfc_options_read(&options, environment, collect, said), 4);
    cr_expect(strstr(said, "BFC_LIMT=1G: no such variable; did you mean BFC_LIMIT?\n"));
    cr_expect(strstr(said, "BFC_GROWTHSIZE=1M: no such variable; did you mean BFC_GROWTH_SIZE?"));
    cr_expect(strstr(said, "BFC_POLCIY=tf: no such variable; did you mean BFC_POLICY?"));
    cr_expect(strstr(said, "BFC_BANANA=1: no such variable; bfcrun --help lists them\n"));
}

Test(options, variables_of_our_builds_are_no_mistakes) {
    static char *const environment[] = {"BFC_BUILD=x", "BFC_TEST_PROGRAMS=9",
                                        "BFC_STRESS_SECONDS=3", "BFC_REFUSALS=all", NULL};
    struct bfc_options options;
    char said[4096] = "";
    bfc_options_init(&options);
    cr_expect_eq(bfc_options_read(&options, environment, collect, said), 0, "%s", said);
}

Test(options, former_names) {
    static char *const former_alone[] = {"BFC_DIRTY_BUDGET=1M", NULL};
    static char *const former_last[] = {"BFC_PENDING_BUDGET=2M", "BFC_DIRTY_BUDGET=1M", NULL};
    static char *const former_first[] = {"BFC_DIRTY_BUDGET=1M", "BFC_PENDING_BUDGET=2M", NULL};
    static char *const malformed[] = {"BFC_DIRTY_BUDGET=x", NULL};
    struct bfc_options options;
    char said[4096] = "";
    bfc_options_init(&options);
    cr_expect_eq(bfc_options_read(&options, former_alone, collect, said), 0, "%s", said);
    cr_expect_eq(options.pending_budget, 1 << 20);
    cr_expect_eq(bfc_options_read(&options, former_last, collect, said), 0, "%s", said);
    cr_expect_eq(options.pending_budget, 2 << 20);
    cr_expect_eq(bfc_options_read(&options, former_first, collect, said), 0, "%s", said);
    cr_expect_eq(options.pending_budget, 2 << 20);
    cr_expect_eq(bfc_options_read(&options, malformed, collect, said), 1);
    cr_expect(strstr(said, "BFC_PENDING_BUDGET=x is not accepted"));
}

Test(options, printed_values_read_back) {
    struct bfc_options options, again;
    char text[4096], *line, *rest = text;
    bfc_options_init(&options);
    set(&options, "BFC_LIMIT", "0.5");
    set(&options, "BFC_GROWTH_MAX", "512M");
    set(&options, "BFC_ONLY", "python*:train");
    bfc_options_print(&options, text, sizeof text);
    bfc_options_init(&again);
    while ((line = strsep(&rest, "\n")) && *line) {
        char *value = strchr(line, '=');
        *value++ = '\0';
        cr_expect(set(&again, line, value), "%s=%s", line, value);
    }
    again.given = options.given; /* all that was printed is given now */
    cr_expect_eq(memcmp(&options, &again, sizeof options), 0);
}

Test(options, patterns) {
    cr_expect(bfc_patterns_match("python*:train", "python3.11"));
    cr_expect(bfc_patterns_match("python*:train", "train"));
    cr_expect_not(bfc_patterns_match("python*:train", "trainer"));
    cr_expect_not(bfc_patterns_match("", "train"));
    cr_expect(bfc_patterns_match("::a", "a"));
}

Test(options, numbers_shares_and_none) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect(set(&options, "BFC_SPLIT_RATIO", "1.5"));
    cr_expect_float_eq(options.split_ratio, 1.5, 1e-9);
    static const char *const malformed[] = {"0.5", "x",  "",      "1e3",
                                            "-2",  "2x", "1.5.5", "9999999999"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        cr_expect_not(set(&options, "BFC_SPLIT_RATIO", malformed[i]), "%s", malformed[i]);
    cr_expect(set(&options, "BFC_LEAK_EXIT", "255"));
    cr_expect_not(set(&options, "BFC_LEAK_EXIT", "0.5"), "it is a status");
    cr_expect(set(&options, "BFC_TRIM_IDLE", "0"));
    cr_expect(set(&options, "BFC_SLACK", "0.5"));
    cr_expect_float_eq(options.page_slack, 0.5, 1e-9);
    cr_expect_not(set(&options, "BFC_SLACK", "none"), "none is no slack: 0 is");
    cr_expect_not(set(&options, "BFC_SLACK", "1.5"));
    cr_expect_eq(options.page, BFC_PAGE_AUTO);
    cr_expect(set(&options, "BFC_PAGE", "fit"));
    cr_expect_eq(options.page, BFC_PAGE_FIT);
    cr_expect(set(&options, "BFC_PAGE", "step"));
    cr_expect_eq(options.page, BFC_PAGE_STEP);
    cr_expect_not(set(&options, "BFC_PAGE", "2M"), "a rule, no size");
    cr_expect(set(&options, "BFC_RESERVE", "0"));
    cr_expect(set(&options, "BFC_RESERVE", "0.1"));
    cr_expect_not(set(&options, "BFC_RESERVE", "none"));
    cr_expect(set(&options, "BFC_MAX_SPLIT", "none"));
    cr_expect_eq(options.max_split, UINT64_MAX);
    cr_expect_not(set(&options, "BFC_MAX_SPLIT", "1M"));
    cr_expect(set(&options, "BFC_ROUNDUP", "8"));
    cr_expect_not(set(&options, "BFC_ROUNDUP", "3"));
}

static unsigned errors_of(char *const *environment, char *said) {
    struct bfc_options options;
    bfc_options_init(&options);
    said[0] = '\0';
    return bfc_options_read(&options, environment, collect, said);
}

Test(options, lists_of_words) {
    struct bfc_options options;
    char text[64];
    bfc_options_init(&options);
    cr_expect_eq(options.last_resort, ~0u);
    cr_expect(set(&options, "BFC_LAST_RESORT", "jobs,pool"));
    cr_expect_eq(options.last_resort, 5u);
    bfc_option_print(&options, "BFC_LAST_RESORT", text, sizeof text);
    cr_expect_str_eq(text, "pool,jobs");
    cr_expect(set(&options, "BFC_LAST_RESORT", "none"));
    cr_expect_eq(options.last_resort, 0u);
    bfc_option_print(&options, "BFC_LAST_RESORT", text, sizeof text);
    cr_expect_str_eq(text, "none");
    static const char *const malformed[] = {
        "",           ",",
        "pool,",      ",pool",
        "pool,,jobs", "pool jobs",
        "Pool",       "all,pool",
        "neighbours", "a-word-that-is-longer-than-any-of-the-words"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        cr_expect_not(set(&options, "BFC_LAST_RESORT", malformed[i]), "%s", malformed[i]);
}

Test(options, waiting_is_a_number_of_seconds) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect_eq(options.wait, 0);
    cr_expect(set(&options, "BFC_WAIT", "1.5"));
    cr_expect_eq(options.wait, 1.5);
    cr_expect_not(set(&options, "BFC_WAIT", "none"));
    cr_expect_not(set(&options, "BFC_WAIT", "-1"));
}

Test(options, contradictions_are_named) {
    char said[4096];
    char *sizes[] = {"BFC_GROWTH_SIZE=2G", "BFC_GROWTH_MAX=1G", NULL};
    cr_expect_eq(errors_of(sizes, said), 1);
    cr_expect(strstr(said, "BFC_GROWTH_SIZE is above BFC_GROWTH_MAX: accepted"));
    char *above[] = {"BFC_GROWTH=preallocate", "BFC_PREALLOCATE=0.8", "BFC_LIMIT=0.5", NULL};
    cr_expect_eq(errors_of(above, said), 1);
    cr_expect(strstr(said, "BFC_PREALLOCATE is above BFC_LIMIT"));
    char *helper[] = {"BFC_TRIM_IDLE=5", "BFC_STATS=0", NULL};
    cr_expect_eq(errors_of(helper, said), 1);
    cr_expect(strstr(said, "BFC_STATS=1"));
    char *queue[] = {"BFC_WAIT=5", "BFC_STATS=0", NULL};
    cr_expect_eq(errors_of(queue, said), 1);
    cr_expect(strstr(said, "BFC_WAIT needs the queue that comes with BFC_STATS=1"));
    char *uncounted[] = {"BFC_SLEEP_IDLE=5", "BFC_GATE=off", NULL},
         *regions[] = {"BFC_SLEEP_QUANTUM=5", "BFC_BACKING=malloc", NULL};
    cr_expect_eq(errors_of(uncounted, said), 1);
    cr_expect(strstr(said, "need BFC_GATE=on, and BFC_BACKING=pages"));
    cr_expect_eq(errors_of(regions, said), 1);
    char *sleeps[] = {"BFC_SLEEP_IDLE=5", NULL};
    cr_expect_eq(errors_of(sleeps, said), 0);
    char *fine[] = {"BFC_GROWTH=preallocate", "BFC_PREALLOCATE=1G", "BFC_LIMIT=1G", NULL};
    cr_expect_eq(errors_of(fine, said), 0);
}

static void read_modes(struct bfc_options *options, char *const *environment, unsigned errors) {
    char said[4096] = "";
    bfc_options_init(options);
    cr_expect_eq(bfc_options_read(options, environment, collect, said), errors, "%s", said);
}

Test(options, a_mode_is_what_it_names) {
    static char *const exact[] = {"BFC_MODE=exact", NULL}, *const fast[] = {"BFC_MODE=fast", NULL},
                       *const compact[] = {"BFC_MODE=compact", NULL};
    struct bfc_options options, standard;
    bfc_options_init(&standard);
    cr_expect_eq(standard.mode, BFC_MODE_EXACT);
    read_modes(&options, exact, 0);
    options.given = 0;
    cr_expect_eq(memcmp(&options, &standard, sizeof options), 0, "exact is today's default");
    read_modes(&options, fast, 0);
    cr_expect_eq(options.free_mode, BFC_FREE_ORDERED);
    cr_expect_eq(options.backing, BFC_BACKING_MALLOC);
    read_modes(&options, compact, 0);
    cr_expect_eq(options.free_mode, BFC_FREE_SYNC);
    cr_expect_eq(options.backing, BFC_BACKING_AUTO);
    cr_expect_str_eq(options.plan, "auto");
}

Test(options, a_single_variable_counts_over_the_mode) {
    static char *const after[] = {"BFC_MODE=fast", "BFC_FREE=lazy", NULL},
                       *const before[] = {"BFC_FREE=sync", "BFC_MODE=fast", NULL},
                       *const plan[] = {"BFC_PLAN=none", "BFC_MODE=compact", NULL};
    struct bfc_options options;
    read_modes(&options, after, 0);
    cr_expect_eq(options.free_mode, BFC_FREE_LAZY);
    read_modes(&options, before, 0);
    cr_expect_eq(options.free_mode, BFC_FREE_SYNC, "also where it is the default");
    read_modes(&options, plan, 0);
    cr_expect_str_empty(options.plan);
    cr_expect_eq(options.backing, BFC_BACKING_AUTO);
}

/* As an environment's after a file's. */
Test(options, a_later_mode_takes_back_an_earlier_one) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect(set(&options, "BFC_MODE", "compact"));
    cr_expect(bfc_option_is_of_mode(&options, bfc_option_find("BFC_PLAN")));
    cr_expect(set(&options, "BFC_MODE", "fast"));
    cr_expect_eq(options.backing, BFC_BACKING_MALLOC);
    cr_expect_str_empty(options.plan);
    cr_expect_eq(options.free_mode, BFC_FREE_ORDERED);
    cr_expect_not(bfc_option_is_of_mode(&options, bfc_option_find("BFC_PLAN")));
}

static const char *unread_of(const char *name, const char *value) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect_not(set(&options, name, value), "%s=%s", name, value);
    return bfc_options_unread(&options);
}

Test(options, what_bounds_or_forbids_must_be_read) {
    static const char *const binding[] = {"BFC_MODE",    "BFC_LIMIT",        "BFC_RESERVE",
                                          "BFC_SPILL",   "BFC_DISABLE",      "BFC_FREE",
                                          "BFC_BACKING", "BFC_BYPASS_ABOVE", "BFC_PREALLOCATE",
                                          "BFC_IPC",     "BFC_STRICT"};
    static const char *const others[] = {"BFC_GROWTH", "BFC_WAIT", "BFC_LOG", "BFC_SUMMARY",
                                         "BFC_ROUNDUP"};
    for (size_t i = 0; i < sizeof binding / sizeof *binding; i++)
        cr_expect_str_eq(unread_of(binding[i], "1X"), binding[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_null(unread_of(others[i], "1X"), "%s", others[i]);
}

Test(options, what_is_set_anew_has_been_read) {
    struct bfc_options options;
    bfc_options_init(&options);
    cr_expect_not(set(&options, "BFC_LIMIT", "2X"));
    cr_expect(set(&options, "BFC_LIMIT", "2G"));
    cr_expect_null(bfc_options_unread(&options));
    cr_expect_not(set(&options, "BFC_LIMIT", "1X"));
    cr_expect_str_eq(bfc_options_unread(&options), "BFC_LIMIT");
}

Test(options, a_bad_bound_says_that_nothing_is_pooled) {
    char said[4096], *environment[] = {"BFC_LIMIT=2X", NULL};
    cr_expect_eq(errors_of(environment, said), 1);
    cr_expect_str_eq(said,
                     "bfcpreload: BFC_LIMIT=2X is not accepted: expected none, a size such as "
                     "2.5G, or a fraction of the device's memory above 0 and below 1; this "
                     "process is not pooled, every call goes to the driver\n");
}

Test(options, ten_are_for_every_day) {
    unsigned everyday = 0;
    for (size_t i = 0; i < bfc_option_count; i++)
        everyday += !(bfc_option_table[i].marks & BFC_OPTION_EXPERT);
    cr_expect_eq(everyday, 10);
}
