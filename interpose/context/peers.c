/* The list of pairs of contexts with access to each other's memory, guarded by a lock. */
#include "interpose/context/peers.h"

#include "base/atomic.h"
#include "interpose/context/contexts.h"

#include <pthread.h>
#include <stdlib.h>

struct pair {
    CUcontext accessor, owner;
    CUdevice device; /* the accessor's device; set when access is first enabled */
    bool on;
    struct pair *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pair *pairs;
size_t bfc_peer_pairs; /* the number of pairs; while it is 0, no lock is taken */

size_t bfc_peers_of(CUcontext owner, CUcontext accessors[BFC_PEERS_MOST]) {
    size_t count = 0;
    if (!bfc_peers_known())
        return 0;
    pthread_mutex_lock(&lock);
    for (const struct pair *pair = pairs; pair; pair = pair->next)
        if (pair->owner == owner)
            accessors[count++] = pair->accessor;
    pthread_mutex_unlock(&lock);
    return count;
}

static CUresult add_pair(CUcontext accessor, CUcontext owner) {
    size_t count = 0;
    for (const struct pair *pair = pairs; pair; pair = pair->next) {
        if (pair->owner == owner && pair->accessor == accessor)
            return CUDA_SUCCESS;
        count += pair->owner == owner;
    }
    if (count == BFC_PEERS_MOST)
        return CUDA_ERROR_TOO_MANY_PEERS;
    struct pair *pair = malloc(sizeof *pair);
    if (!pair)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pair = (struct pair){.accessor = accessor, .owner = owner, .next = pairs};
    pairs = pair;
    bfc_fetch_add_seq_cst(&bfc_peer_pairs, 1);
    return CUDA_SUCCESS;
}

CUresult bfc_peers_add(CUcontext accessor, CUcontext owner) {
    /* mode ordered depends on how many contexts are known, so both become known here */
    bfc_contexts_add(accessor);
    bfc_contexts_add(owner);
    pthread_mutex_lock(&lock);
    CUresult result = add_pair(accessor, owner);
    pthread_mutex_unlock(&lock);
    return result;
}

void bfc_peers_switch_access(CUcontext accessor, CUcontext owner, CUdevice device, bool on) {
    pthread_mutex_lock(&lock);
    for (struct pair *pair = pairs; pair; pair = pair->next)
        if (pair->owner == owner && pair->accessor == accessor) {
            pair->device = device;
            pair->on = on;
        }
    pthread_mutex_unlock(&lock);
}

static bool is_among(CUdevice device, const CUdevice *devices, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (devices[i] == device)
            return true;
    return false;
}

size_t bfc_peers_devices(CUcontext owner, CUdevice own, CUdevice devices[BFC_PEER_DEVICES_MOST]) {
    size_t count = 0;
    if (!bfc_peers_known())
        return 0;
    pthread_mutex_lock(&lock);
    for (const struct pair *pair = pairs; pair && count < BFC_PEER_DEVICES_MOST; pair = pair->next)
        if (pair->owner == owner && pair->on && pair->device != own &&
            !is_among(pair->device, devices, count))
            devices[count++] = pair->device;
    pthread_mutex_unlock(&lock);
    return count;
}

bool bfc_peers_device_may(CUcontext owner, CUdevice device) {
    CUdevice devices[BFC_PEER_DEVICES_MOST];
    return is_among(device, devices, bfc_peers_devices(owner, CU_DEVICE_INVALID, devices));
}

void bfc_peers_forget_pair(CUcontext accessor, CUcontext owner) {
    pthread_mutex_lock(&lock);
    for (struct pair **link = &pairs; *link;) {
        struct pair *pair = *link;
        if ((accessor && pair->accessor != accessor) || (owner && pair->owner != owner)) {
            link = &pair->next;
            continue;
        }
        *link = pair->next;
        free(pair);
        bfc_fetch_sub_seq_cst(&bfc_peer_pairs, 1);
    }
    pthread_mutex_unlock(&lock);
}

void bfc_peers_forget(CUcontext context) {
    bfc_peers_forget_pair(context, NULL);
    bfc_peers_forget_pair(NULL, context);
}
