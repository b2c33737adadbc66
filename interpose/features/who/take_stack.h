/* The calling thread's stack, native and Python, as sites are known by it. Thread-safe. */
#ifndef BFC_INTERPOSE_TAKE_STACK_H
#define BFC_INTERPOSE_TAKE_STACK_H

#include "interpose/features/who/sites.h"

/* Without the lock, which it takes for the texts of Python's functions. The tables must be there.
 */
void bfc_who_take_stack(struct bfc_stack *stack);

/* The stack's site, which is added if it is new; with the lock held from then on. */
uint32_t bfc_who_enter_at_site(const struct bfc_stack *stack);

#endif
