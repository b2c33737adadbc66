/*
 * The sub-commands of bfcplan. The function of each gets argc and argv with the sub-command's name
 * in argv[0], and returns the exit status. Messages go to standard error, results to standard
 * output.
 */
#ifndef BFC_PLAN_COMMAND_H
#define BFC_PLAN_COMMAND_H

#include "base/compiler.h"
#include "planner/common/error.h"

enum exit_status {
    EXIT_GOOD = 0,
    EXIT_FAILED = 1,        /* bad input, an invalid plan, a file that cannot be written */
    EXIT_USAGE = 2,         /* the command line is wrong */
    EXIT_OVER_CAPACITY = 3, /* a plan was found, but it needs more memory than --capacity */
};

int command_solve(int argc, char **argv);
int command_check(int argc, char **argv);
int command_lifetimes(int argc, char **argv);
int command_plot(int argc, char **argv);
int command_period(int argc, char **argv);

/* Prints the error, if it has a text, and returns EXIT_FAILED. */
int command_fail(const struct plan_error *error);

/* Prints one line on standard error and returns EXIT_USAGE. */
int command_misuse(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
