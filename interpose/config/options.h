/*
 * The environment variables BFC_...: reading and printing their values.
 *
 * The table in option_table.c is the only source: the parser, bfcrun's --help and the README's
 * table are made from it. No function here allocates, prints or reads the environment by itself.
 */
#ifndef BFC_INTERPOSE_OPTIONS_H
#define BFC_INTERPOSE_OPTIONS_H

#include "interpose/config/option_table.h"

void bfc_options_init(struct bfc_options *options);

/* Returns the option whose variable has this name or former name, or NULL. */
const struct bfc_option *bfc_option_find(const char *name);

/* Writes into `text` which values `option` accepts, in words; cut off at `size` bytes. */
void bfc_option_describe(const struct bfc_option *option, char *text, size_t size);

/* Sets one option from text. BFC_MODE also sets the options that the mode chooses, except those
 * that have a value of their own, set before or after. False: the value is malformed or out of
 * range; then only `options->unread` has changed. */
bool bfc_option_set(struct bfc_options *options, const struct bfc_option *option,
                    const char *value);

/* Whether the option's value was chosen by BFC_MODE, so that it may differ from the default. */
bool bfc_option_is_of_mode(const struct bfc_options *options, const struct bfc_option *option);

/* Returns the first variable marked BFC_OPTION_BINDING whose value could not be read: nothing may
 * be pooled then. NULL: there is none. */
const char *bfc_options_unread(const struct bfc_options *options);

/* Returns the name of a variable that is most like the unknown `name`; NULL: none is like it. */
const char *bfc_option_nearest(const char *name);

/* Reads every variable that begins with BFC_. A former name counts only where the present name is
 * not set. Calls `complain`, which may be NULL, with one complete line (no newline) for each
 * variable that is unknown or malformed, and for the first contradiction between values.
 * Returns the number of complaints. */
unsigned bfc_options_read(struct bfc_options *options, char *const *environment,
                          void (*complain)(void *context, const char *line), void *context);

struct bfc_pool_config;

/* Returns the amount in bytes on a device of `total` bytes; UINT64_MAX for the word none. */
uint64_t bfc_amount_bytes(const struct bfc_amount *amount, uint64_t total);

/* Copies the options that concern a pool into its `config`; `device_total` is the size of the
 * device's memory, of which some options are fractions. */
void bfc_options_configure(const struct bfc_options *options, uint64_t device_total,
                           struct bfc_pool_config *config);

/* For each variable that needs an optional feature (build option -Dfeatures) which this build
 * lacks, sets the value that does not need it. Calls `complain` with one complete line (no newline)
 * for each whose value was not its default, and returns how many there were. */
unsigned bfc_left_out_settle(struct bfc_options *options,
                             void (*complain)(void *context, const char *line), void *context);

/* If jobs may fall asleep (BFC_SLEEP_IDLE, BFC_SLEEP_QUANTUM), sets the variables that this needs
 * and that are not set: BFC_GATE, BFC_BACKING and, with BFC_SLEEP_QUANTUM, BFC_WAIT. */
void bfc_options_choose_for_sleep(struct bfc_options *options);

/* Writes the present value of the variable `name`, which is in the table; cut off at `size`
 * bytes. */
void bfc_option_print(const struct bfc_options *options, const char *name, char *text, size_t size);

/* Writes a line NAME=value for each option with its present value; cut off at `size` bytes. */
void bfc_options_print(const struct bfc_options *options, char *text, size_t size);

/* Whether `name` (a file name without folders) matches one of the patterns, joined by colons. */
bool bfc_patterns_match(const char *patterns, const char *name);

#endif
