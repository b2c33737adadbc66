/* What was not freed by the process's end, and frees that were refused (BFC_SUMMARY=leaks). */
#ifndef BFC_INTERPOSE_LEAKS_H
#define BFC_INTERPOSE_LEAKS_H

struct bfc_process;

/* When the process exits, if leaks are asked for: writes them to standard error, and makes
 * BFC_LEAK_EXIT the exit status if any block is still in use. One thread. */
void bfc_leaks_at_exit(const struct bfc_process *process);

#endif
