/*
 * Writes parts of JSON that bfcstat's outputs and recordings share: amounts of memory, histograms,
 * ranks, sleep, the map, events. docs/bfcstat.md describes the keys.
 *
 * Thread-safety: as tools/text/json_writer.h.
 */
#ifndef BFC_TOOLS_BFCSTAT_JSON_DETAIL_H
#define BFC_TOOLS_BFCSTAT_JSON_DETAIL_H

#include "tools/job/reader.h"
#include "tools/text/json_writer.h"

/* Writes a share from 0 to 1; a negative share means that it is not known, and is written as
 * null. */
void put_share(struct json_writer *json, const char *key, double share);

/* Writes how many bytes of a pool are in use, requested, free and reserved, and its fragmentation,
 * with the size of the request for which it was computed. */
void put_amounts(struct json_writer *json, const struct bfc_segment_pool *pool);
void put_histograms(struct json_writer *json, const struct bfc_segment_pool *pool);
void put_rank(struct json_writer *json, const struct bfc_segment_header *header);
void put_sleep(struct json_writer *json, const struct bfc_job *job);
void put_map(struct json_writer *json, const struct bfc_job *job);
void put_events(struct json_writer *json, const char *key, const struct bfc_event *events,
                size_t count);

#endif
