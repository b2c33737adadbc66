/* Lets the library write files and sockets without raising a signal in the program around it. */
#ifndef BFC_INTERPOSE_QUIET_H
#define BFC_INTERPOSE_QUIET_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * A system call between bfc_quiet_begin and bfc_quiet_end that would raise a signal when it fails
 * (SIGPIPE, SIGXFSZ), or stop a background process (SIGTTOU), only fails: its signal is consumed. A
 * signal that was pending before stays pending. The call is no cancellation point either.
 */
struct bfc_quiet {
    sigset_t mask, pending;
    int cancel;
};
void bfc_quiet_begin(struct bfc_quiet *quiet);
void bfc_quiet_end(const struct bfc_quiet *quiet); /* does not change errno */

/* Writes to standard error, once, if descriptor 2 still is standard error and accepts the text
 * within 100 ms. */
void bfc_quiet_write(const char *text, size_t size);

#endif
