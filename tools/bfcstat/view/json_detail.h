/*
 * Writes the parts of bfcstat's JSON that are long: histograms, ranks, map, events. docs/bfcstat.md
 * describes the keys.
 *
 * Thread-safety: as tools/text/json_writer.h.
 */
#ifndef BFC_TOOLS_BFCSTAT_JSON_DETAIL_H
#define BFC_TOOLS_BFCSTAT_JSON_DETAIL_H

#include "tools/job/reader.h"
#include "tools/text/json_writer.h"

/* Writes a share from 0 to 1; a negative share is written as null. */
void put_share(struct json_writer *json, const char *key, double share);

/* Writes what is allocated, cached and reserved, and the fragmentation with the request size that
 * it was measured for. */
void put_amounts(struct json_writer *json, const struct bfc_segment_pool *pool);
void put_histograms(struct json_writer *json, const struct bfc_segment_pool *pool);
void put_rank(struct json_writer *json, const struct bfc_segment_header *header);
void put_sleep(struct json_writer *json, const struct bfc_job *job);
void put_map(struct json_writer *json, const struct bfc_job *job);
void put_events(struct json_writer *json, const char *key, const struct bfc_event *events,
                size_t count);

#endif
