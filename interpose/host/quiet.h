/* Lets the library write files and sockets without raising a signal in the program around it. */
#ifndef BFC_INTERPOSE_QUIET_H
#define BFC_INTERPOSE_QUIET_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Between these two calls, a system call that would raise a signal when it fails (SIGPIPE,
 * SIGXFSZ), or stop a background process (SIGTTOU), only fails: its signal is consumed, and a
 * signal that was pending before stays. It is not a cancellation point either.
 */
struct bfc_quiet {
    sigset_t mask, pending;
    int cancel;
};
void bfc_quiet_begin(struct bfc_quiet *quiet);
void bfc_quiet_end(const struct bfc_quiet *quiet); /* keeps errno */

/* Writes once to standard error, if descriptor 2 is still that and accepts the text within a
 * moment. */
void bfc_quiet_write(const char *text, size_t size);

#endif
