/*
 * Variables that ask for a feature which this build of the library left out (-Dfeatures).
 */
#ifndef BFC_INTERPOSE_LEFT_OUT_H
#define BFC_INTERPOSE_LEFT_OUT_H

#include "interpose/config/options.h"

/*
 * Sets each variable that asks for a missing feature to the value that holds without that feature.
 * Calls `complain` with one finished line (no newline) for each whose value was not its default,
 * and returns how many there were.
 */
unsigned bfc_left_out_settle(struct bfc_options *options,
                             void (*complain)(void *context, const char *line), void *context);

#endif
