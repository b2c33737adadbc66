/* The summary that a process prints at its exit (BFC_SUMMARY): what its pools did. */
#ifndef BFC_INTERPOSE_SUMMARY_H
#define BFC_INTERPOSE_SUMMARY_H

struct bfc_process;

/* Writes the summary to standard error, unless BFC_SUMMARY=0 or BFC_LOG=off. Not thread-safe. */
void bfc_summary_at_exit(const struct bfc_process *process);

#endif
