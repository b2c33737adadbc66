#include "tests/integration/last_resort/board.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 64, PAGE = 2 << 20 };

struct place {
    pid_t pid;
    size_t has, asks;
    double since_ms, starved_ms;
    unsigned overtaken;
};

static struct board {
    size_t total;
    double changed_ms;
    struct place place[PLACES];
} * board;
static struct place *own;
static int file = -1;

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static bool is_before(const struct place *a, const struct place *b) {
    return a->asks && (a->since_ms < b->since_ms || (a->since_ms == b->since_ms && a < b));
}

/* Who got what another one has freed may say so first. */
static size_t unused(void) {
    size_t used = 0;
    for (int i = 0; i < PLACES; i++)
        used += board->place[i].has;
    return used < board->total ? board->total - used : 0;
}

/* Would there be enough for all that came before it, and then for it? */
static bool has_its_turn(const struct place *place) {
    size_t need = place->asks;
    for (int i = 0; i < PLACES; i++)
        if (is_before(&board->place[i], place))
            need += board->place[i].asks;
    return need <= unused();
}

/* The dead have nothing, and ask for nothing. */
static void clear_dead(void) {
    for (int i = 0; i < PLACES; i++)
        if (board->place[i].pid && kill(board->place[i].pid, 0) != 0)
            board->place[i] = (struct place){0};
}

/* Accounts for the time since the last change; the lock is held until change_end. */
static bool change_begin(void) {
    if (!own)
        return false;
    flock(file, LOCK_EX);
    double now = now_ms(), passed = now - board->changed_ms;
    for (int i = 0; i < PLACES; i++)
        if (board->place[i].asks && has_its_turn(&board->place[i]))
            board->place[i].starved_ms += passed;
    board->changed_ms = now;
    return true;
}

static void change_end(void) {
    flock(file, LOCK_UN);
}

static void take_place(void) {
    flock(file, LOCK_EX);
    clear_dead();
    for (int i = 0; i < PLACES && !own; i++)
        if (!board->place[i].pid)
            own = &board->place[i];
    if (own)
        own->pid = getpid();
    flock(file, LOCK_UN);
}

void board_open(const char *path, size_t total) {
    file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (file < 0 || ftruncate(file, sizeof *board) != 0)
        return;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (board == MAP_FAILED)
        exit(2);
    board->total = total;
    take_place();
}

/* The device has it in pages. */
static size_t in_pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

void board_ask(size_t bytes) {
    if (!change_begin())
        return;
    own->asks = in_pages(bytes);
    own->since_ms = now_ms();
    own->starved_ms = 0;
    own->overtaken = 0;
    change_end();
}

/* Those that came before, that this one's memory would have served, and cannot be served now. */
static void note_overtaken(size_t bytes) {
    for (int i = 0; i < PLACES; i++) {
        struct place *place = &board->place[i];
        if (is_before(place, own) && place->asks <= unused() + bytes && place->asks > unused())
            place->overtaken++;
    }
}

struct waited board_got(size_t bytes, int success) {
    if (!change_begin())
        return (struct waited){0};
    struct waited waited = {own->starved_ms, own->overtaken};
    if (success) {
        own->has += in_pages(bytes);
        note_overtaken(in_pages(bytes));
    }
    own->asks = 0;
    change_end();
    return waited;
}

void board_freed(size_t bytes) {
    if (!change_begin())
        return;
    own->has -= in_pages(bytes);
    change_end();
}
