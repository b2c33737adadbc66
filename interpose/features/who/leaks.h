/* Blocks that a process never freed, and its invalid frees (BFC_SUMMARY=leaks). */
#ifndef BFC_INTERPOSE_LEAKS_H
#define BFC_INTERPOSE_LEAKS_H

struct bfc_process;

/* To be called when the process exits. Does nothing unless BFC_SUMMARY=leaks; else writes the list
 * to standard error, and makes BFC_LEAK_EXIT the exit status if any block is still in use. Not
 * thread-safe. */
void bfc_leaks_at_exit(const struct bfc_process *process);

#endif
