/* Variables that need an optional feature which this build lacks. */
#include "interpose/config/options.h"

#include <stdio.h>
#include <string.h>

#include "interpose/table/feature.h"

/* A variable that may need a feature, and the value that does not need it. */
struct need {
    const char *variable, *feature, *without;
    /* the one value that needs the feature; NULL: all values but `without` need it */
    const char *asking;
};

static const struct need needs[] = {
    {"BFC_GATE", "gate", "off", NULL},         {"BFC_BACKING", "pages", "malloc", NULL},
    {"BFC_SLACK", "pages", "0.03", NULL},      {"BFC_PAGE", "pages", "auto", NULL},
    {"BFC_PLAN", "plan", "none", NULL},        {"BFC_YIELD", "pressure", "0", NULL},
    {"BFC_WAIT", "pressure", "0", NULL},       {"BFC_RECORD", "record", "none", NULL},
    {"BFC_IPC", "share", "off", NULL},         {"BFC_SPILL", "spill", "0", NULL},
    {"BFC_TRIM_IDLE", "watch", "none", NULL},  {"BFC_STACKS", "who", "off", NULL},
    {"BFC_TAGS", "who", "off", NULL},          {"BFC_LEAK_EXIT", "who", "0", NULL},
    {"BFC_SUMMARY", "who", "1", "leaks"},      {"BFC_SUMMARY", "watch", "0", NULL},
    {"BFC_SLEEP_IDLE", "sleep", "none", NULL}, {"BFC_SLEEP_QUANTUM", "sleep", "none", NULL},
    {"BFC_SLEEP_TO", "sleep", "memory", NULL},
};

static bool has_feature(const char *name) {
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->name && strcmp((*feature)->name, name) == 0)
        return true;
    return false;
}

/* If the variable's value needs the feature, replaces it by `without`. Complains and returns true
 * only if the replaced value was not the default, which means that the user had asked for it. */
static bool settle_need(struct bfc_options *options, const struct need *need,
                        void (*complain)(void *context, const char *line), void *context) {
    const struct bfc_option *option = bfc_option_find(need->variable);
    char value[256], built[128], line[512];
    bfc_option_print(options, need->variable, value, sizeof value);
    bool asks = need->asking ? strcmp(value, need->asking) == 0 : strcmp(value, need->without) != 0;
    if (!asks)
        return false;
    bfc_option_set(options, option, need->without);
    if (strcmp(value, option->standard) == 0)
        return false;
    bfc_features_names(built, sizeof built);
    snprintf(line, sizeof line,
             "bfcpreload: %s=%.128s: this library was built without the feature %s (it has:%s); %s "
             "holds",
             need->variable, value, need->feature, built[0] ? built : " none", need->without);
    complain(context, line);
    return true;
}

unsigned bfc_left_out_settle(struct bfc_options *options,
                             void (*complain)(void *context, const char *line), void *context) {
    unsigned told = 0;
    for (size_t i = 0; i < 2 * sizeof needs / sizeof needs[0]; i++) {
        const struct need *need = &needs[i % (sizeof needs / sizeof needs[0])];
        /* the list is gone through twice: in between, bfc_options_choose_for_sleep sets variables
         * that may need missing features, too */
        if (i == sizeof needs / sizeof needs[0])
            bfc_options_choose_for_sleep(options);
        if (!has_feature(need->feature))
            told += settle_need(options, need, complain, context);
    }
    return told;
}
