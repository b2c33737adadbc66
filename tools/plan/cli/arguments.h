/*
 * Parses command lines. Options are in a table, and are given as "--name value" or "--name=value",
 * and as "-o value" if they have a letter. All other arguments, and all after "--", are operands.
 */
#ifndef BFC_PLAN_ARGUMENTS_H
#define BFC_PLAN_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum option_kind { OPTION_TEXT, OPTION_FLAG, OPTION_NUMBER, OPTION_BYTES, OPTION_SECONDS };

struct option {
    const char *name; /* name of the option, without dashes */
    char letter;      /* the letter of its short form, as o in "-o"; 0: it has none */
    enum option_kind kind;
    /* Where the value is stored. The type depends on `kind`: const char **, bool *, uint64_t *,
     * uint64_t * or double *, in the order of enum option_kind. */
    void *value;
    uint64_t least, most; /* bounds of the value, if it is a number or an amount of bytes */
};

/* Stores the values of the options that are given, and exactly `operands_wanted` operands in
 * `operands`. False: the command line is wrong, and a message was printed, in which `operands_text`
 * says which operands are wanted. */
bool arguments_parse(int argc, char **argv, const struct option *options, unsigned options_count,
                     const char **operands, unsigned operands_wanted, const char *operands_text);

#endif
