/*
 * The frees that streams have yet to reach: a queue for each stream, in the order of the frees'
 * numbers. No cost here grows with the number of streams or of frees.
 *
 * Not thread-safe: the caller holds a lock.
 */
#ifndef BFC_INTERPOSE_STREAM_QUEUES_H
#define BFC_INTERPOSE_STREAM_QUEUES_H

#include "interpose/driver/driver.h"

struct stream_free {
    struct stream_free *next; /* in its queue, or in a store */
    CUevent event;
    CUcontext context;      /* context of the event */
    unsigned char liveness; /* enum liveness, of the event's context */
    bool rivalled; /* another free drew a number after this free drew its own and before it was
                      queued */
    CUdeviceptr start;
    uint64_t number;
};

struct stream_queue {
    struct stream_queue *next; /* the next queue with the same hash */
    size_t place;              /* the index in `all` */
    uint64_t stream;           /* the stream's id, which no other stream ever has */
    struct stream_free *first, *last;
};

struct stream_queues {
    struct stream_queue **all, **hashed; /* arrays of `capacity` places each */
    size_t count, capacity, promised;
};

void stream_queues_clear(struct stream_queues *queues);

/* Promises room for one more queue, so that a free can be queued later without fail. False: the
 * host has no memory. A promise is kept by stream_queues_add, or withdrawn. */
bool stream_queues_promise(struct stream_queues *queues);
void stream_queues_withdraw(struct stream_queues *queues);

/* Queues a free for which room was promised. If the stream has no queue, `*spare` becomes its queue
 * and is set to NULL. */
void stream_queues_add(struct stream_queues *queues, uint64_t stream, struct stream_free *one,
                       struct stream_queue **spare);

struct stream_queue *stream_queues_find(const struct stream_queues *queues, uint64_t stream);

/* Takes out the stream's first free if its number is at most `number`; else returns NULL. */
struct stream_free *stream_queues_take(struct stream_queues *queues, uint64_t stream,
                                       uint64_t number);

#endif
