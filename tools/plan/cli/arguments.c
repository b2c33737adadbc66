#include "tools/plan/cli/arguments.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "planner/common/number.h"
#include "tools/plan/cli/command.h"

/* Returns the option that `argument` ("--name", "--name=value" or "-o") names; NULL: none. *value
 * becomes the text after "=", or NULL. */
static const struct option *find_option(const struct option *options, unsigned count,
                                        const char *argument, const char **value) {
    *value = NULL;
    for (unsigned i = 0; i < count; i++) {
        const size_t length = strlen(options[i].name);
        if (options[i].letter != '\0' && argument[1] == options[i].letter && argument[2] == '\0')
            return &options[i];
        if (argument[1] != '-' || strncmp(argument + 2, options[i].name, length) != 0)
            continue;
        if (argument[2 + length] == '=')
            *value = argument + 3 + length;
        if (argument[2 + length] == '=' || argument[2 + length] == '\0')
            return &options[i];
    }
    return NULL;
}

static bool take_number(const struct option *option, const char *value) {
    uint64_t number;
    const bool good = option->kind == OPTION_BYTES
                          ? bfc_bytes_parse(value, PLAN_MOST_BYTES, &number)
                          : plan_parse_u64(value, strlen(value), UINT64_MAX, &number);
    if (!good || number < option->least || number > option->most) {
        command_misuse("--%s '%s' is not a whole number from %" PRIu64 " to %" PRIu64 "%s",
                       option->name, value, option->least, option->most,
                       option->kind == OPTION_BYTES ? ", or one with K, M, G or T" : "");
        return false;
    }
    *(uint64_t *)option->value = number;
    return true;
}

static bool take_value(const struct option *option, const char *value) {
    if (option->kind == OPTION_NUMBER || option->kind == OPTION_BYTES)
        return take_number(option, value);
    if (option->kind == OPTION_TEXT) {
        *(const char **)option->value = value;
        return true;
    }
    if (plan_parse_seconds(value, option->value))
        return true;
    command_misuse("--%s '%s' is not a number of seconds from 0 to 1000000000", option->name,
                   value);
    return false;
}

static bool take_option(const struct option *option, const char *value, const char *next,
                        int *used) {
    if (option->kind == OPTION_FLAG) {
        if (value) {
            command_misuse("--%s takes no value", option->name);
            return false;
        }
        *(bool *)option->value = true;
        return true;
    }
    if (!value && !next) {
        command_misuse("--%s needs a value", option->name);
        return false;
    }
    *used += value == NULL;
    return take_value(option, value ? value : next);
}

bool arguments_parse(int argc, char **argv, const struct option *options, unsigned options_count,
                     const char **operands, unsigned operands_wanted, const char *operands_text) {
    unsigned operands_count = 0;
    bool only_operands = false;
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (!only_operands && strcmp(argv[i], "--") == 0) {
            only_operands = true;
            continue;
        }
        if (only_operands || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (operands_count == operands_wanted) {
                command_misuse("unexpected argument '%s': %s takes %s", argv[i], argv[0],
                               operands_text);
                return false;
            }
            operands[operands_count++] = argv[i];
            continue;
        }
        const struct option *option = find_option(options, options_count, argv[i], &value);
        if (!option) {
            command_misuse("%s: unknown option '%s'", argv[0], argv[i]);
            return false;
        }
        if (!take_option(option, value, i + 1 < argc ? argv[i + 1] : NULL, &i))
            return false;
    }
    if (operands_count == operands_wanted)
        return true;
    command_misuse("%s needs %s", argv[0], operands_text);
    return false;
}
