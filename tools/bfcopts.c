/*
 * bfcopts: what the table of BFC_ variables says, for bfcrun, the README and people.
 *
 * bfcopts help            one block of text for bfcrun --help: --name=VALUE, meaning, default
 * bfcopts markdown        the README's table
 * bfcopts names           the variables' names, one a line
 * bfcopts flags           bfcrun's options for them, one a line
 * bfcopts former          bfcrun's options of former names, one a line
 * bfcopts version
 * bfcopts check NAME=VALUE…
 *                         prints each with the variable's present name; exit status 0 when all are
 *                         accepted; else 1 and one line that names the first that is not, and what
 *                         is accepted
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "interpose/config/options.h"

/* BFC_GROWTH_SIZE to --growth-size */
static void print_flag(const char *name, char *text, size_t size) {
    snprintf(text, size, "--%s", name + strlen("BFC_"));
    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
}

/* The meaning, as the table has it, and the former name if there is one. */
static void print_meaning(const struct bfc_option *option) {
    fputs(option->meaning, stdout);
    if (option->former)
        printf(" The former name %s is accepted too.", option->former);
}

static void print_help(void) {
    for (size_t i = 0; i < bfc_option_count; i++) {
        const struct bfc_option *option = &bfc_option_table[i];
        char flag[64], accepted[256];
        print_flag(option->name, flag, sizeof flag);
        bfc_option_describe(option, accepted, sizeof accepted);
        printf("  %s=VALUE\n      ", flag);
        print_meaning(option);
        printf("\n      VALUE: %s; default %s\n", accepted, option->standard);
    }
}

static void print_markdown(void) {
    puts("| variable | default | accepted | meaning |\n|---|---|---|---|");
    for (size_t i = 0; i < bfc_option_count; i++) {
        const struct bfc_option *option = &bfc_option_table[i];
        char accepted[256];
        bfc_option_describe(option, accepted, sizeof accepted);
        printf("| `%s` | `%s` | %s | ", option->name, option->standard, accepted);
        print_meaning(option);
        puts(" |");
    }
}

static void print_names(void) {
    for (size_t i = 0; i < bfc_option_count; i++)
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

static void complain_unknown(const char *assignment, int name_length) {
    fprintf(stderr, "no variable %.*s; known are", name_length, assignment);
    for (size_t i = 0; i < bfc_option_count; i++)
        fprintf(stderr, " %s", bfc_option_table[i].name);
    fputc('\n', stderr);
}

static int check(const char *assignment) {
    char name[64], accepted[256];
    struct bfc_options options;
    size_t name_length = strcspn(assignment, "=");
    snprintf(name, sizeof name, "%.*s", (int)name_length, assignment);
    const struct bfc_option *option = bfc_option_find(name);
    if (!option || assignment[name_length] != '=') {
        complain_unknown(assignment, (int)name_length);
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

int main(int count, char **arguments) {
    const char *command = count > 1 ? arguments[1] : "";
    if (count == 2 && strcmp(command, "help") == 0)
        print_help();
    else if (count == 2 && strcmp(command, "markdown") == 0)
        print_markdown();
    else if (count == 2 && strcmp(command, "names") == 0)
        print_names();
    else if (count == 2 && strcmp(command, "flags") == 0)
        print_flags();
    else if (count == 2 && strcmp(command, "former") == 0)
        print_former_flags();
    else if (count == 2 && strcmp(command, "version") == 0)
        puts(BFC_VERSION);
    else if (strcmp(command, "check") == 0) {
        int status = 0;
        for (int i = 2; i < count && status == 0; i++)
            status = check(arguments[i]);
        return status;
    } else {
        fputs("usage: bfcopts help | markdown | names | flags | former | version |"
              " check NAME=VALUE...\n",
              stderr);
        return 2;
    }
    return 0;
}
