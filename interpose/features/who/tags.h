/*
 * Tags: what a thread says that it is doing, by calls of the public interface and by NVTX ranges.
 *
 * Each thread has a stack of names; a sample keeps them, outermost first, as one text with slashes
 * between them. A domain's ranges are pushed and popped apart from another's. A range that was
 * started is of the thread that started it, until any thread ends it. At most 24 names count in a
 * thread, the first 63 bytes of each, and 4,096 different texts in a process. Thread-safe; not
 * async-signal-safe. Nothing is kept while no stacks are taken.
 */
#ifndef BFC_INTERPOSE_TAGS_H
#define BFC_INTERPOSE_TAGS_H

#include <stdbool.h>
#include <stdint.h>

/* What a name is known by: its offset in the texts; 0: there is none. */
uint32_t bfc_tags_name(const char *name);

/* `domain`: any number. Push: how many there were before. Pop: false: there is none. */
unsigned bfc_tags_push(uint64_t domain, uint32_t name);
bool bfc_tags_pop(uint64_t domain);

/* `id`: of the range, never 0. */
void bfc_tags_start(uint64_t id, uint32_t name);
void bfc_tags_end(uint64_t id);

/* The calling thread's names as one text: its offset in the texts, 0 where there are none. */
uint32_t bfc_tags_now(void);

#endif
