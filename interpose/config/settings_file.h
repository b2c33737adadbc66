/*
 * The settings files: the BFC_ variables as lines NAME=value, for the whole machine and for a user.
 * Lines that are empty or begin with # say nothing; blanks around name and value do not count.
 * Where both files set a variable the user's counts, and the environment comes before both.
 *
 * Nothing here allocates or prints. No descriptor stays open, and errno may change.
 */
#ifndef BFC_INTERPOSE_SETTINGS_FILE_H
#define BFC_INTERPOSE_SETTINGS_FILE_H

#include "interpose/config/options.h"

#define BFC_SYSTEM_SETTINGS "/etc/bfcpreload.conf"
#define BFC_USER_SETTINGS "bfcpreload.conf" /* in $XDG_CONFIG_HOME, or else ~/.config */

/* Called while a file is read: `complain` for each complaint, `take` for each value that was taken.
 * Both may be NULL. */
struct bfc_settings_listener {
    /* a line that can be written as it is, without a newline */
    void (*complain)(void *context, const char *line);
    void (*taken)(void *context, const struct bfc_option *option, const char *path, unsigned line);
    void *context;
};

/* The path of the user's file; false: the environment names none. XDG_CONFIG_HOME counts only if
 * it is absolute, as its specification has it. */
bool bfc_user_settings(char *const *environment, char *path, size_t size);

/* Reads both files into `options`; a line that is not accepted changes nothing. Returns how many
 * complaints there were; a missing file is none. Not for a process that runs with more rights than
 * its user (AT_SECURE). */
unsigned bfc_settings_read(struct bfc_options *options, char *const *environment,
                           const struct bfc_settings_listener *listener);

#endif
