/* Takes the calling thread's stack, native and Python, and finds its site. Thread-safe. */
#ifndef BFC_INTERPOSE_TAKE_STACK_H
#define BFC_INTERPOSE_TAKE_STACK_H

#include "interpose/features/who/sites.h"

/* To be called without bfc_who_lock, once bfc_sites_begin has succeeded. */
void bfc_who_take_stack(struct bfc_stack *stack);

/* Returns the stack's site, after adding it if it is new, and leaves bfc_who_lock held. */
uint32_t bfc_who_enter_at_site(const struct bfc_stack *stack);

#endif
