/*
 * bfcopts: prints the table of BFC_ variables, for bfcrun, the README and users.
 *
 * bfcopts help            one block of text for bfcrun --help: --name=VALUE, meaning, default
 * bfcopts markdown        the README's table
 * bfcopts names           the variables' names, one a line
 * bfcopts everyday        the variables that are not for experts alone
 * bfcopts flags           bfcrun's options for the variables, one a line
 * bfcopts former          bfcrun's options of former names, one a line
 * bfcopts nearest NAME    bfcrun's option for the variable whose name is most like NAME; nothing if
 *                         no name is like it
 * bfcopts config [NAME...]
 *                         each variable's value in force and its origin; NAMEs are the variables
 *                         that bfcrun's options have set. Prints a line on standard error for each
 *                         setting that is not accepted, and then ends with 1
 * bfcopts check NAME=VALUE...
 *                         the assignments, former names replaced by present ones. At the first that
 *                         is not accepted, prints a line on standard error and ends with 1
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "interpose/config/settings_file.h"
#include "tools/text/print_text.h"

/* Writes bfcrun's option for a variable: --growth-size for BFC_GROWTH_SIZE. */
static void print_flag(const char *name, char *text, size_t size) {
    snprintf(text, size, "--%s", name + strlen("BFC_"));
    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
}

/* Returns a sentence about what the variable means, with one about its former name if it has had
 * another name. */
static const char *meaning_of(const struct bfc_option *option, char *text, size_t size) {
    const char *former = option->former;
    snprintf(text, size, "%s%s%s%s", option->meaning, former ? " The former name " : "",
             former ? former : "", former ? " is accepted too." : "");
    return text;
}

/* Prints a variable's option, meaning and accepted values, in lines that fit the terminal. */
static void print_help_of(const struct bfc_option *option, unsigned width) {
    char flag[64], accepted[256], text[1024];
    print_flag(option->name, flag, sizeof flag);
    printf("  %s=VALUE\n", flag);
    text_wrap(meaning_of(option, text, sizeof text), 6, width, stdout);
    bfc_option_describe(option, accepted, sizeof accepted);
    snprintf(text, sizeof text, "VALUE: %s; default %s.", accepted, option->standard);
    text_wrap(text, 6, width, stdout);
}

/* Prints the help on all variables: first those for everyday use, then those for experts. */
static void print_help(void) {
    unsigned width = text_width(stdout, 80), part = BFC_OPTION_EXPERT;
    for (size_t i = 0; i < bfc_option_count; i++) {
        const struct bfc_option *option = &bfc_option_table[i];
        if ((option->marks & BFC_OPTION_EXPERT) != part)
            puts(part ? "Every day:\n" : "\nFor experts:\n");
        part = option->marks & BFC_OPTION_EXPERT;
        print_help_of(option, width);
    }
}

static void print_markdown(void) {
    puts("| variable | default | accepted | meaning |\n|---|---|---|---|");
    for (size_t i = 0; i < bfc_option_count; i++) {
        const struct bfc_option *option = &bfc_option_table[i];
        char accepted[256], meaning[1024];
        bfc_option_describe(option, accepted, sizeof accepted);
        printf("| `%s` | `%s` | %s | %s |\n", option->name, option->standard, accepted,
               meaning_of(option, meaning, sizeof meaning));
    }
}

static void print_names(void) {
    for (size_t i = 0; i < bfc_option_count; i++)
        puts(bfc_option_table[i].name);
}

static void print_everyday(void) {
    for (size_t i = 0; i < bfc_option_count; i++)
        if (!(bfc_option_table[i].marks & BFC_OPTION_EXPERT))
            puts(bfc_option_table[i].name);
}

static void print_flags(void) {
    char flag[64];
    for (size_t i = 0; i < bfc_option_count; i++) {
        print_flag(bfc_option_table[i].name, flag, sizeof flag);
        puts(flag);
    }
}

static void print_former_flags(void) {
    char flag[64];
    for (size_t i = 0; i < bfc_option_count; i++)
        if (bfc_option_table[i].former) {
            print_flag(bfc_option_table[i].former, flag, sizeof flag);
            puts(flag);
        }
}

static void print_nearest(const char *name) {
    char flag[64];
    const char *nearest = bfc_option_nearest(name);
    if (!nearest)
        return;
    print_flag(nearest, flag, sizeof flag);
    puts(flag);
}

static void complain_unknown(const char *assignment, const char *name) {
    const char *nearest = bfc_option_nearest(name);
    fprintf(stderr, "%s: no such variable%s%s%s\n", assignment,
            nearest ? "; did you mean " : "; bfcopts names lists them", nearest ? nearest : "",
            nearest ? "?" : "");
}

static int check_assignment(const char *assignment) {
    char name[64], accepted[256];
    struct bfc_options options;
    size_t name_length = strcspn(assignment, "=");
    snprintf(name, sizeof name, "%.*s", (int)name_length, assignment);
    const struct bfc_option *option = bfc_option_find(name);
    if (!option || assignment[name_length] != '=') {
        complain_unknown(assignment, name);
        return 1;
    }
    bfc_options_init(&options);
    if (bfc_option_set(&options, option, assignment + name_length + 1)) {
        printf("%s%s\n", option->name, assignment + name_length);
        return 0;
    }
    bfc_option_describe(option, accepted, sizeof accepted);
    fprintf(stderr, "%s is not accepted: expected %s\n", assignment, accepted);
    return 1;
}

static int check_all(int count, char **assignments) {
    int status = 0;
    for (int i = 0; i < count && status == 0; i++)
        status = check_assignment(assignments[i]);
    return status;
}

#define MOST_OPTIONS 128

struct origins {
    struct bfc_options options;
    /* For each variable, by index in bfc_option_table: where its value comes from; empty: it has
     * the default, or what BFC_MODE implies. */
    char place[MOST_OPTIONS][512];
};

static void print_complaint(void *context, const char *line) {
    (void)context;
    fprintf(stderr, "%s\n", line);
}

static char *place_of(struct origins *origins, const struct bfc_option *option) {
    return origins->place[option - bfc_option_table];
}

static void remember_line(void *context, const struct bfc_option *option, const char *path,
                          unsigned line) {
    snprintf(place_of(context, option), sizeof((struct origins *)context)->place[0], "%s:%u", path,
             line);
}

/* Stores that the environment is the origin of each variable that it sets to an accepted value. A
 * former name counts only if the present name is not set. */
static void remember_environment(struct origins *origins) {
    struct bfc_options ignored = {0};
    for (size_t i = 0; i < bfc_option_count; i++) {
        const struct bfc_option *option = &bfc_option_table[i];
        const char *former = option->former ? getenv(option->former) : NULL;
        const char *value = getenv(option->name) ? getenv(option->name) : former;
        if (value && bfc_option_set(&ignored, option, value))
            snprintf(place_of(origins, option), sizeof origins->place[0], "environment");
    }
}

static void remember_command_line(struct origins *origins, int count, char **names) {
    for (int i = 0; i < count; i++) {
        const struct bfc_option *option = bfc_option_find(names[i]);
        if (option)
            snprintf(place_of(origins, option), sizeof origins->place[0], "command line");
    }
}

static void print_file(const char *path) {
    if (access(path, F_OK) == 0)
        printf("# %s\n", path);
    else
        printf("# %s (%s)\n", path, errno == ENOENT ? "not there" : strerror(errno));
}

static void print_origins(const struct origins *origins) {
    struct text_table table = {.columns = 3};
    for (size_t i = 0; i < bfc_option_count; i++) {
        char value[256];
        bfc_option_print(&origins->options, bfc_option_table[i].name, value, sizeof value);
        const char *place =
            bfc_option_is_of_mode(&origins->options, &bfc_option_table[i]) ? "BFC_MODE" : "default";
        text_table_add(&table,
                       (const char *const[]){bfc_option_table[i].name, value,
                                             origins->place[i][0] ? origins->place[i] : place});
    }
    text_table_print(&table, stdout, 0);
    text_table_free(&table);
}

static int print_config(int count, char **names) {
    static struct origins origins;
    char path[4096];
    struct bfc_settings_listener listener = {print_complaint, remember_line, &origins};
    bfc_options_init(&origins.options);
    unsigned errors = 0;
    if (!getauxval(AT_SECURE))
        errors += bfc_settings_read(&origins.options, environ, &listener);
    errors += bfc_options_read(&origins.options, environ, print_complaint, NULL);
    remember_environment(&origins);
    remember_command_line(&origins, count, names);
    print_file(BFC_SYSTEM_SETTINGS);
    if (bfc_user_settings(environ, path, sizeof path))
        print_file(path);
    print_origins(&origins);
    return errors != 0;
}

static void print_version_number(void) {
    puts(BFC_VERSION);
}

static void print_version(void) {
    puts("bfcopts " BFC_VERSION);
}

static const char usage[] = "usage: bfcopts help | markdown | names | everyday | flags | former | "
                            "version\n"
                            "       bfcopts nearest NAME | check NAME=VALUE...\n"
                            "       bfcopts config [NAME...]\n"
                            "       bfcopts --help | --version\n";

static void print_usage(void) {
    fputs(usage, stdout);
}

static const struct command {
    const char *name;
    void (*print)(void);
} commands[] = {
    {"help", print_help},
    {"markdown", print_markdown},
    {"names", print_names},
    {"everyday", print_everyday},
    {"flags", print_flags},
    {"former", print_former_flags},
    {"version", print_version_number},
    {"--version", print_version},
    {"--help", print_usage},
    {"-h", print_usage},
};

int main(int count, char **arguments) {
    const char *command = count > 1 ? arguments[1] : "";
    if (strcmp(command, "config") == 0)
        return print_config(count - 2, arguments + 2);
    if (strcmp(command, "check") == 0)
        return check_all(count - 2, arguments + 2);
    if (strcmp(command, "nearest") == 0 && count == 3) {
        print_nearest(arguments[2]);
        return 0;
    }
    for (size_t i = 0; count == 2 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(command, commands[i].name) == 0) {
            commands[i].print();
            return 0;
        }
    fputs(usage, stderr);
    return 2;
}
