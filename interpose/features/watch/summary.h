/* What the pools did, for people, when the process exits (BFC_SUMMARY). */
#ifndef BFC_INTERPOSE_SUMMARY_H
#define BFC_INTERPOSE_SUMMARY_H

struct bfc_process;

/* Writes it to standard error, if it is asked for and messages are. One thread. */
void bfc_summary_tell(const struct bfc_process *process);

#endif
