/*
 * Counters of what all jobs of a user did on a device, jobs that have ended included. bfcstat serve
 * exports them.
 *
 * A job that runs out of memory mostly ends at once, and its shared-memory segment is removed with
 * it, before Prometheus asks again. So the folder of segments is watched (inotify), each segment is
 * opened when it appears and kept open, and when its name is gone, its counters are read once more.
 * The number of segments that are kept open, and of pairs of user and device, is bounded
 * (shares.h).
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_TALLY_H
#define BFC_TOOLS_TALLY_H

#include "tools/bfcstat/view/view.h"

/* How many shared-memory segments are kept open at most. */
#define MOST_KEPT 1024u

/* Begins to watch the folder of shared-memory segments. What jobs have done until now is not
 * counted. NULL: no memory. */
struct tally_book *tally_begin(const char *folder);
void tally_end(struct tally_book *book);

/* Returns a descriptor that becomes readable when the folder changes; -1: the folder cannot be
 * watched now. */
int tally_descriptor(const struct tally_book *book);

/* Handles the changes of the folder that have happened: opens new shared-memory segments, and reads
 * those that were removed for the last time. */
void tally_follow(struct tally_book *book);

/* Adds what the jobs have done since the last call to the counters, and makes findings->tallies
 * point to them. */
void tally_show(struct tally_book *book, struct findings *findings);

#endif
