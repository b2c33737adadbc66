/* Queues of frees, in an array for going through them, and hashed by their streams' ids. */
#include "interpose/arena/stream_queues.h"

#include <stdlib.h>

#include "base/mix.h"

enum { FIRST_CAPACITY = 16 }; /* a power of two */

static struct stream_queue **hash_slot(const struct stream_queues *queues, uint64_t stream) {
    return &queues->hashed[bfc_mix(stream) & (queues->capacity - 1)];
}

static void free_list(struct stream_free *gone) {
    while (gone) {
        struct stream_free *next = gone->next;
        free(gone);
        gone = next;
    }
}

void stream_queues_clear(struct stream_queues *queues) {
    for (size_t i = 0; i < queues->count; i++) {
        free_list(queues->all[i]->first);
        free(queues->all[i]);
    }
    free(queues->all);
    free(queues->hashed);
    *queues = (struct stream_queues){0};
}

static void hash_queue(struct stream_queues *queues, struct stream_queue *queue) {
    struct stream_queue **slot = hash_slot(queues, queue->stream);
    queue->next = *slot;
    *slot = queue;
}

static bool make_room_for_queues(struct stream_queues *queues) {
    size_t capacity = queues->capacity ? 2 * queues->capacity : FIRST_CAPACITY;
    struct stream_queue **hashed = calloc(capacity, sizeof *hashed);
    struct stream_queue **all = hashed ? realloc(queues->all, capacity * sizeof *all) : NULL;
    if (!all) {
        free(hashed);
        return false;
    }
    free(queues->hashed);
    queues->all = all;
    queues->hashed = hashed;
    queues->capacity = capacity;
    for (size_t i = 0; i < queues->count; i++)
        hash_queue(queues, all[i]);
    return true;
}

bool stream_queues_promise(struct stream_queues *queues) {
    bool room = queues->count + queues->promised < queues->capacity || make_room_for_queues(queues);
    queues->promised += room;
    return room;
}

void stream_queues_withdraw(struct stream_queues *queues) {
    queues->promised--;
}

struct stream_queue *stream_queues_find(const struct stream_queues *queues, uint64_t stream) {
    struct stream_queue *queue = queues->capacity ? *hash_slot(queues, stream) : NULL;
    while (queue && queue->stream != stream)
        queue = queue->next;
    return queue;
}

static struct stream_queue *open_queue(struct stream_queues *queues, uint64_t stream,
                                       struct stream_queue **spare) {
    struct stream_queue *queue = stream_queues_find(queues, stream);
    if (queue)
        return queue;
    queue = *spare;
    *spare = NULL;
    *queue = (struct stream_queue){.stream = stream, .place = queues->count};
    queues->all[queues->count++] = queue;
    hash_queue(queues, queue);
    return queue;
}

/* Frees come out of order only if two threads free in one stream at the same time. */
static void put_in_order(struct stream_queue *queue, struct stream_free *one) {
    struct stream_free **link = &queue->first;
    if (queue->last && queue->last->number < one->number)
        link = &queue->last->next;
    while (*link && (*link)->number < one->number)
        link = &(*link)->next;
    one->next = *link;
    *link = one;
    if (!one->next)
        queue->last = one;
}

void stream_queues_add(struct stream_queues *queues, uint64_t stream, struct stream_free *one,
                       struct stream_queue **spare) {
    queues->promised--;
    put_in_order(open_queue(queues, stream, spare), one);
}

/* Removes a queue; the array's last queue takes its place. */
static void close_queue(struct stream_queues *queues, struct stream_queue *queue) {
    struct stream_queue **link = hash_slot(queues, queue->stream);
    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
    struct stream_queue *last = queues->all[--queues->count];
    queues->all[queue->place] = last;
    last->place = queue->place;
    free(queue);
}

struct stream_free *stream_queues_take(struct stream_queues *queues, uint64_t stream,
                                       uint64_t number) {
    struct stream_queue *queue = stream_queues_find(queues, stream);
    struct stream_free *first = queue ? queue->first : NULL;
    if (!first || first->number > number)
        return NULL;
    queue->first = first->next;
    if (!queue->first)
        close_queue(queues, queue);
    return first;
}
