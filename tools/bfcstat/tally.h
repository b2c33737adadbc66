/*
 * Counts of what jobs did, by user and device, that outlast the jobs.
 *
 * A job that runs out of memory mostly ends at once, and its segment with it. So the folder of
 * segments is watched (inotify), each segment is kept open from its creation on, and when its name
 * is gone, it is read once more. The number of segments that are kept open, and of users and
 * devices, is bounded (shares.h).
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_TALLY_H
#define BFC_TOOLS_TALLY_H

#include "tools/bfcstat/view/view.h"

/* The most segments that are kept open. */
#define MOST_KEPT 1024u

/* Begins to watch the folder. What jobs that run already have done until now is not counted. NULL:
 * no memory. */
struct tally_book *tally_begin(const char *folder);
void tally_end(struct tally_book *book);

/* A descriptor that can be read when the folder has changed; -1: it cannot be watched now. */
int tally_descriptor(const struct tally_book *book);

/* Takes in what has changed in the folder. */
void tally_follow(struct tally_book *book);

/* Counts what the jobs have done since the last call, and makes findings->tallies point to the
 * counts. */
void tally_show(struct tally_book *book, struct findings *findings);

#endif
