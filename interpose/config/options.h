/*
 * The BFC_ variables: one table of names, kinds, ranges and meanings, and what was read from them.
 *
 * The table is the only source: parsing, bfcrun's --help and the README's table come from it.
 * No function here allocates, prints or reads the environment by itself.
 */
#ifndef BFC_INTERPOSE_OPTIONS_H
#define BFC_INTERPOSE_OPTIONS_H

#include "interpose/config/option_table.h"

/* Sets all options to their defaults. */
void bfc_options_init(struct bfc_options *options);

/* Returns the option whose variable has this name or former name, or NULL. */
const struct bfc_option *bfc_option_find(const char *name);

/* Writes in words what `option` accepts; cut off at `size` bytes. */
void bfc_option_describe(const struct bfc_option *option, char *text, size_t size);

/* Reads one value. BFC_MODE also sets the options that the mode chooses, except those that are set
 * explicitly, before or after. False: the value is malformed or out of range, and only `unread` has
 * changed. */
bool bfc_option_set(struct bfc_options *options, const struct bfc_option *option,
                    const char *value);

/* Whether BFC_MODE has chosen the option's present value, which may then differ from the option's
 * default. */
bool bfc_option_is_of_mode(const struct bfc_options *options, const struct bfc_option *option);

/* The first variable whose value could not be read and without which nothing may be pooled
 * (BFC_OPTION_BINDING); NULL: there is none. */
const char *bfc_options_unread(const struct bfc_options *options);

/* Returns the variable that was most likely meant by an unknown name, or NULL. */
const char *bfc_option_nearest(const char *name);

/* Reads every variable that begins with BFC_; a former name counts only where the present name is
 * not set. Calls `complain`, which may be NULL, with one finished line (no newline) for each
 * variable that is unknown or malformed, and for the first contradiction between values. Returns
 * the number of complaints. */
unsigned bfc_options_read(struct bfc_options *options, char *const *environment,
                          void (*complain)(void *context, const char *line), void *context);

struct bfc_pool_config;

/* Returns how many bytes an amount means on a device of `total` bytes; UINT64_MAX: the amount is
 * none. */
uint64_t bfc_amount_bytes(const struct bfc_amount *amount, uint64_t total);

/* Sets those fields of `config` that options choose, for a device of `device_total` bytes. */
void bfc_options_configure(const struct bfc_options *options, uint64_t device_total,
                           struct bfc_pool_config *config);

/* Sets each variable that asks for a feature which this build left out (-Dfeatures) to the value
 * that holds without that feature. Calls `complain` with one finished line (no newline) for each
 * whose value was not its default, and returns how many there were. */
unsigned bfc_left_out_settle(struct bfc_options *options,
                             void (*complain)(void *context, const char *line), void *context);

/* Writes the value in force of the variable `name` of the table; cut off at `size` bytes. */
void bfc_option_print(const struct bfc_options *options, const char *name, char *text, size_t size);

/* Writes NAME=value lines for all options, as they are in force; cut off at `size` bytes. */
void bfc_options_print(const struct bfc_options *options, char *text, size_t size);

/* Whether `name` (a file name without folders) matches one of the patterns, joined by colons. */
bool bfc_patterns_match(const char *patterns, const char *name);

#endif
