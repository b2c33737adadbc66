/*
 * Damages tokens and tables in every way that comes to mind, for as many rounds as are asked for:
 * whatever is read back must be exactly what was published, or nothing.
 *
 * usage: fuzz_tokens [ROUNDS [SEED]]
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared_folder.h"
#include "interpose/features/share/token_table.h"

enum { ROWS = 40 };

static uint64_t state;

/* xorshift64*: G. Marsaglia's generator with S. Vigna's multiplier. */
static uint64_t draw(uint64_t below) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(2685821657736338717) % below;
}

static void must(bool condition, const char *what) {
    if (condition)
        return;
    printf("%s\n", what);
    exit(1);
}

/* ---- the table's file, as whoever can write it may ---- */

static char path[300];

static void find_file(void) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "bfcipc.%u.", getuid());
    char middle[32];
    snprintf(middle, sizeof middle, ".%d.", getpid());
    DIR *folder = opendir(BFC_SHARED_FOLDER);
    must(folder != NULL, "no " BFC_SHARED_FOLDER);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && strstr(entry->d_name, middle))
            snprintf(path, sizeof path, BFC_SHARED_FOLDER "/%s", entry->d_name);
    closedir(folder);
    must(path[0], "no table was made");
}

static size_t read_file(uint8_t *bytes, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, bytes, size);
    close(file);
    must(length >= 0, "the table cannot be read");
    return (size_t)length;
}

static void write_file(const uint8_t *bytes, size_t size) {
    int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    must(write(file, bytes, size) == (ssize_t)size, "the table cannot be written");
    close(file);
}

static void spoil_bits(uint8_t *bytes, size_t size) {
    for (uint64_t count = 1 + draw(20); count > 0 && size > 0; count--)
        bytes[draw(size)] ^= (uint8_t)(1u << draw(8));
}

static void spoil_words(uint8_t *bytes, size_t size) {
    static const uint64_t words[] = {
        0, 1, UINT64_MAX, UINT64_MAX - 511, UINT64_C(1) << 63, UINT64_C(1) << 40};
    for (uint64_t count = 1 + draw(10); count > 0 && size >= 8; count--)
        memcpy(bytes + draw(size / 8) * 8, &words[draw(sizeof words / sizeof words[0])], 8);
}

/* Rows of others in a row's place. */
static void spoil_order(uint8_t *bytes, size_t size) {
    size_t rows = size / sizeof(struct bfc_row);
    if (rows > 1)
        memcpy(bytes + draw(rows) * sizeof(struct bfc_row),
               bytes + draw(rows) * sizeof(struct bfc_row), sizeof(struct bfc_row));
}

static size_t spoil(uint8_t *bytes, size_t size) {
    switch (draw(4)) {
    case 0:
        spoil_bits(bytes, size);
        return size;
    case 1:
        spoil_words(bytes, size);
        return size;
    case 2:
        spoil_order(bytes, size);
        return size;
    default:
        return draw(size + 1);
    }
}

/* ---- rounds ---- */

static struct bfc_token tokens[ROWS];
static struct bfc_row rows[ROWS];

static void publish(unsigned i) {
    static uint64_t generation;
    uint64_t region = (1 + draw(1000)) * 4096;
    rows[i] = (struct bfc_row){.region_size = region, .offset = draw(region)};
    rows[i].size = 1 + draw(region - rows[i].offset);
    for (size_t j = 0; j < sizeof rows[i].handle; j++)
        rows[i].handle[j] = (uint8_t)draw(256);
    tokens[i] = (struct bfc_token){.generation = ++generation};
    must(bfc_token_table_publish(&tokens[i], &rows[i]), "a row cannot be published");
}

static bool is_published(const struct bfc_row *row) {
    for (unsigned i = 0; i < ROWS; i++)
        if (memcmp(row, &rows[i], sizeof *row) == 0)
            return true;
    return false;
}

static void read_all_well(void) {
    struct bfc_row row;
    for (unsigned i = 0; i < ROWS; i++) {
        must(bfc_token_table_read(&tokens[i], &row) == BFC_TABLE_FOUND, "a good token is refused");
        must(memcmp(&row, &rows[i], sizeof row) == 0, "a good token reads another row");
    }
}

static void damage_token(void) {
    struct bfc_row row;
    struct bfc_token token = tokens[draw(ROWS)], before = token;
    uint8_t *bytes = (uint8_t *)&token;
    size_t kept = draw(sizeof token);
    if (draw(2))
        spoil_bits(bytes, sizeof token);
    else
        memset(bytes + kept, (int)draw(2) * 0xff, sizeof token - kept);
    /* One who knows how tokens are sealed, and not the keys. */
    if (draw(2)) {
        token.key[draw(sizeof token.key)] ^= 1;
        bfc_token_seal(&token);
    }
    if (memcmp(&token, &before, sizeof token) != 0)
        must(bfc_token_table_read(&token, &row) != BFC_TABLE_FOUND, "a damaged token reads a row");
}

static void damage_table(void) {
    static uint8_t whole[BFC_TABLE_HEAD + ROWS * sizeof(struct bfc_row) * 2], bytes[sizeof whole];
    struct bfc_row row;
    size_t size = read_file(whole, sizeof whole);
    memcpy(bytes, whole, size);
    write_file(bytes, BFC_TABLE_HEAD + spoil(bytes + BFC_TABLE_HEAD, size - BFC_TABLE_HEAD));
    for (unsigned i = 0; i < ROWS; i++)
        if (bfc_token_table_read(&tokens[i], &row) == BFC_TABLE_FOUND)
            must(is_published(&row) && memcmp(&row, &rows[i], sizeof row) == 0,
                 "a damaged table gives a row that nobody published");
    write_file(whole, size);
}

static void replay(void) {
    unsigned i = (unsigned)draw(ROWS);
    struct bfc_token old = tokens[i];
    struct bfc_row row;
    bfc_token_table_retire(&tokens[i]);
    must(bfc_token_table_read(&old, &row) != BFC_TABLE_FOUND, "a retired token reads a row");
    publish(i);
    must(bfc_token_table_read(&old, &row) != BFC_TABLE_FOUND, "a replayed token reads a row");
}

/* Others may neither have been able to write the file, nor be made to read another one. */
static void loosen(void) {
    struct bfc_row row;
    must(chmod(path, 0620) == 0, "chmod");
    must(bfc_token_table_read(&tokens[0], &row) == BFC_TABLE_UNSAFE,
         "a table open to others is read");
    must(chmod(path, 0600) == 0, "chmod");
    char aside[sizeof path + 8];
    snprintf(aside, sizeof aside, "%s.aside", path);
    must(rename(path, aside) == 0 && symlink(aside, path) == 0, "symlink");
    must(bfc_token_table_read(&tokens[0], &row) == BFC_TABLE_UNSAFE, "a link is followed");
    must(unlink(path) == 0, "unlink");
    must(bfc_token_table_read(&tokens[0], &row) == BFC_TABLE_MISSING,
         "a table that is gone is found");
    must(mkfifo(path, 0600) == 0, "mkfifo");
    must(bfc_token_table_read(&tokens[0], &row) == BFC_TABLE_UNSAFE, "a pipe is read");
    must(rename(aside, path) == 0, "rename");
}

int main(int count, char **arguments) {
    unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 2000;
    state = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    for (unsigned i = 0; i < ROWS; i++)
        publish(i);
    find_file();
    loosen();
    for (unsigned long round = 0; round < rounds; round++) {
        damage_token();
        damage_table();
        replay();
        if (round % 100 == 0)
            read_all_well();
    }
    read_all_well();
    printf("%lu rounds\n", rounds);
    return 0;
}
