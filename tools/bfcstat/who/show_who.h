/* Shows what bfcstat who found out as text, as JSON, or as collapsed stacks for flame graphs.
 * docs/who.md describes the keys of the JSON. */
#ifndef BFC_TOOLS_WHO_SHOW_H
#define BFC_TOOLS_WHO_SHOW_H

#include <stdio.h>

#include "tools/bfcstat/who/sums.h"

/* Shows how much memory is held by library, or by tag if `by_tag` is set, and then by call stack
 * (site): at most `most` of them (0: all), each with its frames. */
void show_who_text(const struct who_sums *sums, struct who_names *names, bool by_tag, size_t most,
                   FILE *stream);
void show_who_json(const struct who_sums *sums, struct who_names *names, FILE *stream);

/* Writes a line "outermost;...;innermost BYTES" for each call stack, from which other tools make
 * flame graphs. If the sums compare two answers of the job, only the call stacks whose memory has
 * grown are written. */
void show_who_collapsed(const struct who_sums *sums, struct who_names *names, FILE *stream);

#endif
