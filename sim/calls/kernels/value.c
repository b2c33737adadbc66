// Words of memory as signals: streams write them, and wait until they have a value.
//
// The word may lie in device memory or in mapped host memory.
#include "sim/base/clock.h"
#include "sim/base/lock.h"
#include "sim/base/options.h"
#include "sim/base/work.h"
#include "sim/border/border.h"
#include "sim/kernel.h"
#include "sim/memory/allocate.h"
#include "sim/memory/ranges.h"
#include "sim/memory/reach.h"
#include "sim/order/meant.h"
#include "sim/order/stream.h"

#include <stdlib.h>
#include <string.h>

struct value {
    struct sim_work work;
    uintptr_t address;
    cuuint64_t value;
    size_t bytes;
    unsigned flags;
};

static cuuint64_t load(const void *word, size_t bytes) {
    return bytes == 4 ? __atomic_load_n((const cuuint32_t *)word, __ATOMIC_ACQUIRE)
                      : __atomic_load_n((const cuuint64_t *)word, __ATOMIC_ACQUIRE);
}

static void store(void *word, size_t bytes, cuuint64_t value) {
    if (bytes == 4) {
        __atomic_store_n((cuuint32_t *)word, (cuuint32_t)value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n((cuuint64_t *)word, value, __ATOMIC_RELEASE);
    }
}

static char *place(const struct value *value) {
    sim_lock_take();
    char *word = sim_reach(value->address, value->bytes);
    sim_lock_give();
    return word;
}

static CUresult run_write(struct sim_work *work) {
    const struct value *value = (const struct value *)work;
    char *word = place(value);
    if (word == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    store(word, value->bytes, value->value);
    return CUDA_SUCCESS;
}

static bool met(const struct value *value, cuuint64_t now) {
    cuuint64_t ahead = now - value->value;
    bool negative = value->bytes == 4 ? (int32_t)(cuuint32_t)ahead < 0 : (int64_t)ahead < 0;
    switch (value->flags & 3u) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return ~(now | value->value) << (64 - value->bytes * 8) != 0;
    default: // GEQ: cyclic
        return !negative;
    }
}

static CUresult run_wait(struct sim_work *work) {
    const struct value *value = (const struct value *)work;
    for (;;) {
        const char *word = place(value); // anew: it may have been unmapped
        if (word == NULL) {
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        if (met(value, load(word, value->bytes))) {
            return CUDA_SUCCESS;
        }
        if (sim_options.step != 0) {
            return (CUresult)SIM_AGAIN;
        }
        sim_pause(20);
    }
}

static void drop(struct sim_work *work) {
    free(work);
}

static struct sim_work *repeat(const struct sim_work *work) {
    struct value *copy = malloc(sizeof *copy);
    if (copy != NULL) {
        memcpy(copy, work, sizeof *copy);
    }
    return copy != NULL ? &copy->work : NULL;
}

static const struct sim_work_type write_type = {
    .run = run_write, .drop = drop, .clone = repeat, .node = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
static const struct sim_work_type wait_type = {
    .run = run_wait, .drop = drop, .clone = repeat, .node = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};

static CUresult submit(const struct sim_work_type *type, CUstream handle, bool per_thread,
                       CUdeviceptr address, cuuint64_t wanted, size_t bytes, unsigned flags) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL) {
        return result;
    }
    bool known = sim_allocation_at(address) != NULL || sim_host_at(address) != NULL;
    if (!known || address % bytes != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct value *value = calloc(1, sizeof *value);
    if (value == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    value->work.type = type;
    value->address = address;
    value->value = wanted;
    value->bytes = bytes;
    value->flags = flags;
    return sim_submit(stream, &value->work);
}

#define VALUE_CALLS(name, type, word, bytes)                                                       \
    SIM_PAIR(name, name##_ptsz, SIM_CURRENT,                                                       \
             (CUstream stream, CUdeviceptr address, word value, unsigned flags),                   \
             submit(&(type), stream, per_thread, address, value, bytes, flags))

// ---- batches ----

static CUresult submit_operation(const CUstreamBatchMemOpParams *one, CUstream stream,
                                 bool per_thread) {
    const struct CUstreamMemOpWaitValueParams_st *wait = &one->waitValue;
    const struct CUstreamMemOpWriteValueParams_st *write = &one->writeValue;
    switch (one->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return submit(&wait_type, stream, per_thread, wait->address, wait->value, 4, wait->flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return submit(&wait_type, stream, per_thread, wait->address, wait->value64, 8, wait->flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return submit(&write_type, stream, per_thread, write->address, write->value, 4,
                      write->flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return submit(&write_type, stream, per_thread, write->address, write->value64, 8,
                      write->flags);
    case CU_STREAM_MEM_OP_BARRIER: // nothing here is out of order
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult submit_batch(CUstream stream, bool per_thread, unsigned count,
                             const CUstreamBatchMemOpParams *operations, unsigned flags) {
    CUresult result = CUDA_SUCCESS;
    if (operations == NULL || count > 256 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = submit_operation(&operations[i], stream, per_thread);
    }
    return result;
}

#define BATCH_CALLS(name)                                                                          \
    SIM_PAIR(                                                                                      \
        name, name##_ptsz, SIM_CURRENT,                                                            \
        (CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags),   \
        submit_batch(stream, per_thread, count, operations, flags))

BATCH_CALLS(cuStreamBatchMemOp)
BATCH_CALLS(cuStreamBatchMemOp_v2)
VALUE_CALLS(cuStreamWriteValue32, write_type, cuuint32_t, 4)
VALUE_CALLS(cuStreamWriteValue32_v2, write_type, cuuint32_t, 4)
VALUE_CALLS(cuStreamWriteValue64, write_type, cuuint64_t, 8)
VALUE_CALLS(cuStreamWriteValue64_v2, write_type, cuuint64_t, 8)
VALUE_CALLS(cuStreamWaitValue32, wait_type, cuuint32_t, 4)
VALUE_CALLS(cuStreamWaitValue32_v2, wait_type, cuuint32_t, 4)
VALUE_CALLS(cuStreamWaitValue64, wait_type, cuuint64_t, 8)
VALUE_CALLS(cuStreamWaitValue64_v2, wait_type, cuuint64_t, 8)
