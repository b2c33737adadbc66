/*
 * Tags: names that a program gives to what a thread is doing, through the public interface
 * (interpose/api/bfcpreload.h) or by NVTX ranges.
 *
 * Each thread has a stack of names. When an allocation is sampled, the names of its thread are
 * stored as one text, outermost first, with slashes between them. Each NVTX domain (a library's own
 * set of ranges) has its own order of pushes and pops. A range that was started belongs to the
 * thread that started it, but any thread may end it. Of each thread 24 names are stored, of each
 * name the first 63 bytes, and of a process 4,096 different texts. Thread-safe; not
 * async-signal-safe.
 */
#ifndef BFC_INTERPOSE_TAGS_H
#define BFC_INTERPOSE_TAGS_H

#include <stdbool.h>
#include <stdint.h>

/* Stores a name and returns its offset in bfc_sites.texts; 0 for NULL, or if there is no room. */
uint32_t bfc_tags_name(const char *name);

/* Pushes a name onto the calling thread's stack of names. Returns how many names the thread had
 * before, over all domains. */
unsigned bfc_tags_push(uint64_t domain, uint32_t name);

/* Removes the name that was pushed last in the domain. False: there is none. */
bool bfc_tags_pop(uint64_t domain);

/* Start and end a named range. The id must not be 0. */
void bfc_tags_start(uint64_t id, uint32_t name);
void bfc_tags_end(uint64_t id);

/* Returns the offset in bfc_sites.texts of the calling thread's names, joined to one text; 0 if it
 * has none. */
uint32_t bfc_tags_now(void);

#endif
