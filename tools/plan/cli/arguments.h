/*
 * Command lines: a table of options, and everything else is an operand. "--name value",
 * "--name=value", and for options with a letter "-o value". After "--" all are operands.
 */
#ifndef BFC_PLAN_ARGUMENTS_H
#define BFC_PLAN_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum option_kind { OPTION_TEXT, OPTION_FLAG, OPTION_NUMBER, OPTION_BYTES, OPTION_SECONDS };

struct option {
    const char *name; /* the option's name, without dashes */
    char letter;      /* the option's letter, or 0 if it has none */
    enum option_kind kind;
    /* where the value is stored; by kind, this has the type const char **, bool *, uint64_t *,
     * uint64_t * or double * */
    void *value;
    uint64_t least, most; /* the bounds of a value that is a number or an amount of bytes */
};

/* Stores values, and exactly `operands_wanted` operands in `operands`. On wrong usage it prints a
 * message (with `operands_text` for the operands) and returns false. */
bool arguments_parse(int argc, char **argv, const struct option *options, unsigned options_count,
                     const char **operands, unsigned operands_wanted, const char *operands_text);

#endif
