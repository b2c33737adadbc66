/*
 * The settings files: lines NAME=value that set the BFC_ variables, one file for the whole machine
 * and one for the user. Empty lines, lines that begin with #, and blanks around names and values
 * are ignored. The user's file overrides the machine's, and environment variables override both.
 *
 * No function here allocates or prints. No descriptor stays open, and errno may change.
 */
#ifndef BFC_INTERPOSE_SETTINGS_FILE_H
#define BFC_INTERPOSE_SETTINGS_FILE_H

#include "interpose/config/options.h"

#define BFC_SYSTEM_SETTINGS "/etc/bfcpreload.conf"
/* the user's file, in $XDG_CONFIG_HOME, or else in ~/.config */
#define BFC_USER_SETTINGS "bfcpreload.conf"

/* Functions that are called while a file is read: `complain` for each line that is not accepted,
 * `taken` for each value that is set. Both may be NULL. */
struct bfc_settings_listener {
    /* `line` is a complete message without a newline */
    void (*complain)(void *context, const char *line);
    void (*taken)(void *context, const struct bfc_option *option, const char *path, unsigned line);
    void *context;
};

/* Writes the path of the user's file into `path`; false: the environment does not tell the user's
 * home. A relative XDG_CONFIG_HOME is ignored, as its specification demands. */
bool bfc_user_settings(char *const *environment, char *path, size_t size);

/* Reads the machine's and the user's file into `options`; a line that is not accepted changes
 * nothing. A missing file is no error. Returns the number of complaints. Not to be called in a
 * process that runs with more rights than its user (AT_SECURE). */
unsigned bfc_settings_read(struct bfc_options *options, char *const *environment,
                           const struct bfc_settings_listener *listener);

#endif
