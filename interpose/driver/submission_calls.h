/*
 * Driver calls that submit work which may use device memory, and that have a hook only so that
 * submissions are counted. Programs get these hooks only if submissions are counted (BFC_GATE,
 * interpose/table/counter.h). Other calls that submit work are in hooked_calls.h.
 */
#ifndef BFC_INTERPOSE_SUBMISSION_CALLS_H
#define BFC_INTERPOSE_SUBMISSION_CALLS_H

#include "interpose/driver/hooked_calls.h"

/* Each row: NAME; the number of arguments, all of which are passed on as machine words a, b, c...;
 * which of them is the stream (0: the default stream; BFC_STREAMS_UNKNOWN: there may be several);
 * whether 0 means the calling thread's own default stream. BFC_TWINS makes two rows, one for each
 * value of the last column. */
#define BFC_SUBMISSION_CALLS(X)                                                                    \
    BFC_TWINS(X, _ptsz, cuFabricCpyBatchAsync, 4, d)                                               \
    X(cuLaunchCooperativeKernelMultiDevice, 3, BFC_STREAMS_UNKNOWN, false)                         \
    BFC_TWINS(X, _ptsz, cuLaunchHostFunc, 3, a)                                                    \
    BFC_TWINS(X, _ptsz, cuLaunchHostFunc_v2, 4, a)                                                 \
    BFC_TWINS(X, _ptsz, cuMemBatchDecompressAsync, 5, e)                                           \
    BFC_TWINS(X, _ptsz, cuMemDiscardAndPrefetchBatchAsync, 8, h)                                   \
    BFC_TWINS(X, _ptsz, cuMemDiscardBatchAsync, 5, e)                                              \
    BFC_TWINS(X, _ptsz, cuMemMapArrayAsync, 3, c)                                                  \
    BFC_TWINS(X, _ptsz, cuMemPrefetchAsync, 4, d)                                                  \
    BFC_TWINS(X, _ptsz, cuMemPrefetchAsync_v2, 5, e)                                               \
    BFC_TWINS(X, _ptsz, cuMemPrefetchBatchAsync, 8, h)                                             \
    X(cuMemcpy2D, 1, 0, false)                                                                     \
    X(cuMemcpy2DAsync, 2, b, false)                                                                \
    BFC_TWINS(X, _ptsz, cuMemcpy2DAsync_v2, 2, b)                                                  \
    X(cuMemcpy2DUnaligned, 1, 0, false)                                                            \
    X(cuMemcpy3D, 1, 0, false)                                                                     \
    X(cuMemcpy3DAsync, 2, b, false)                                                                \
    BFC_TWINS(X, _ptsz, cuMemcpy3DAsync_v2, 2, b)                                                  \
    BFC_TWINS(X, _ptsz, cuMemcpy3DBatchAsync, 5, e)                                                \
    BFC_TWINS(X, _ptsz, cuMemcpy3DBatchAsync_v2, 4, d)                                             \
    BFC_TWINS(X, _ptsz, cuMemcpy3DPeerAsync, 2, b)                                                 \
    BFC_TWINS(X, _ptsz, cuMemcpy3DWithAttributesAsync, 3, c)                                       \
    X(cuMemcpyAtoA, 5, 0, false)                                                                   \
    BFC_TWINS(X, _ptds, cuMemcpyAtoA_v2, 5, 0)                                                     \
    X(cuMemcpyAtoD, 4, 0, false)                                                                   \
    X(cuMemcpyAtoH, 4, 0, false)                                                                   \
    X(cuMemcpyAtoHAsync, 5, e, false)                                                              \
    BFC_TWINS(X, _ptsz, cuMemcpyAtoHAsync_v2, 5, e)                                                \
    BFC_TWINS(X, _ptds, cuMemcpyAtoH_v2, 4, 0)                                                     \
    BFC_TWINS(X, _ptsz, cuMemcpyBatchAsync, 9, i)                                                  \
    BFC_TWINS(X, _ptsz, cuMemcpyBatchAsync_v2, 8, h)                                               \
    X(cuMemcpyDtoA, 4, 0, false)                                                                   \
    X(cuMemcpyDtoD, 3, 0, false)                                                                   \
    X(cuMemcpyDtoDAsync, 4, d, false)                                                              \
    X(cuMemcpyDtoH, 3, 0, false)                                                                   \
    X(cuMemcpyDtoHAsync, 4, d, false)                                                              \
    X(cuMemcpyHtoA, 4, 0, false)                                                                   \
    X(cuMemcpyHtoAAsync, 5, e, false)                                                              \
    BFC_TWINS(X, _ptsz, cuMemcpyHtoAAsync_v2, 5, e)                                                \
    BFC_TWINS(X, _ptds, cuMemcpyHtoA_v2, 4, 0)                                                     \
    X(cuMemcpyHtoD, 3, 0, false)                                                                   \
    X(cuMemcpyHtoDAsync, 4, d, false)                                                              \
    BFC_TWINS(X, _ptsz, cuMemcpyPeerAsync, 6, f)                                                   \
    BFC_TWINS(X, _ptsz, cuMemcpyWithAttributesAsync, 5, e)                                         \
    X(cuMemsetD16, 3, 0, false)                                                                    \
    BFC_TWINS(X, _ptsz, cuMemsetD16Async, 4, d)                                                    \
    X(cuMemsetD2D16, 5, 0, false)                                                                  \
    BFC_TWINS(X, _ptsz, cuMemsetD2D16Async, 6, f)                                                  \
    X(cuMemsetD2D32, 5, 0, false)                                                                  \
    BFC_TWINS(X, _ptsz, cuMemsetD2D32Async, 6, f)                                                  \
    X(cuMemsetD2D8, 5, 0, false)                                                                   \
    BFC_TWINS(X, _ptsz, cuMemsetD2D8Async, 6, f)                                                   \
    X(cuMemsetD32, 3, 0, false)                                                                    \
    X(cuMemsetD8, 3, 0, false)                                                                     \
    BFC_TWINS(X, _ptsz, cuSignalExternalSemaphoresAsync, 4, d)                                     \
    BFC_TWINS(X, _ptsz, cuStreamAddCallback, 4, a)                                                 \
    BFC_TWINS(X, _ptsz, cuStreamAttachMemAsync, 4, a)                                              \
    BFC_TWINS(X, _ptsz, cuStreamBatchMemOp, 4, a)                                                  \
    BFC_TWINS(X, _ptsz, cuStreamBatchMemOp_v2, 4, a)                                               \
    BFC_TWINS(X, _ptsz, cuStreamWaitValue32, 4, a)                                                 \
    BFC_TWINS(X, _ptsz, cuStreamWaitValue32_v2, 4, a)                                              \
    BFC_TWINS(X, _ptsz, cuStreamWaitValue64, 4, a)                                                 \
    BFC_TWINS(X, _ptsz, cuStreamWaitValue64_v2, 4, a)                                              \
    BFC_TWINS(X, _ptsz, cuStreamWriteValue32, 4, a)                                                \
    BFC_TWINS(X, _ptsz, cuStreamWriteValue32_v2, 4, a)                                             \
    BFC_TWINS(X, _ptsz, cuStreamWriteValue64, 4, a)                                                \
    BFC_TWINS(X, _ptsz, cuStreamWriteValue64_v2, 4, a)                                             \
    BFC_TWINS(X, _ptsz, cuWaitExternalSemaphoresAsync, 4, d)

/*
 * Driver calls that submit nothing, but take addresses of device memory: directly, in a struct, or
 * in a graph that they make executable or put into another one. They have a hook only because
 * memory that was moved off the device (BFC_SLEEP_IDLE) must be back when the driver is given its
 * address: the driver may look at what is mapped there, to find the context of the memory, to
 * refuse an address without memory, or to keep a reference. tests/integration/lookups/stay_asleep
 * lists the other calls that take addresses, each with the reason; its test compares both lists
 * with cuda.h. Each row: NAME; the number of arguments; what contains the address.
 */
#define BFC_AWAKE_CALLS(X)                                                                         \
    X(cuGraphAddBatchMemOpNode, 5, NODE)                                                           \
    X(cuGraphAddChildGraphNode, 5, GRAPH)                                                          \
    X(cuGraphAddMemcpyNode, 6, NODE)                                                               \
    X(cuGraphAddMemsetNode, 6, NODE)                                                               \
    X(cuGraphBatchMemOpNodeSetParams, 2, NODE)                                                     \
    X(cuGraphExecBatchMemOpNodeSetParams, 3, NODE)                                                 \
    X(cuGraphExecChildGraphNodeSetParams, 3, GRAPH)                                                \
    X(cuGraphExecMemcpyNodeSetParams, 4, NODE)                                                     \
    X(cuGraphExecMemsetNodeSetParams, 4, NODE)                                                     \
    X(cuGraphExecNodeSetParams, 3, NODE)                                                           \
    X(cuGraphExecUpdate, 4, GRAPH)                                                                 \
    X(cuGraphExecUpdate_v2, 3, GRAPH)                                                              \
    X(cuGraphKernelNodeSetAttribute, 3, WINDOW)                                                    \
    X(cuGraphMemcpyNodeSetParams, 2, NODE)                                                         \
    X(cuGraphMemsetNodeSetParams, 2, NODE)                                                         \
    X(cuGraphNodeSetParams, 2, NODE)                                                               \
    X(cuGraphNodeSetParams_v2, 2, NODE)                                                            \
    X(cuMemGetLocationInfo, 5, QUESTION)                                                           \
    X(cuStreamSetAttribute, 3, WINDOW)                                                             \
    X(cuStreamSetAttribute_ptsz, 3, WINDOW)                                                        \
    X(cuTexRefSetAddress, 4, TEXTURE)                                                              \
    X(cuTexRefSetAddress2D, 4, TEXTURE)                                                            \
    X(cuTexRefSetAddress2D_v2, 4, TEXTURE)                                                         \
    X(cuTexRefSetAddress2D_v3, 4, TEXTURE)                                                         \
    X(cuTexRefSetAddress_v2, 4, TEXTURE)

/* BFC_WORDS_N: parameters of a function with N arguments, all of the size of a machine word.
 * BFC_PASSED_N: those arguments. */
#define BFC_WORDS_1 (uintptr_t a)
#define BFC_PASSED_1 (a)
#define BFC_WORDS_2 (uintptr_t a, uintptr_t b)
#define BFC_PASSED_2 (a, b)
#define BFC_WORDS_3 (uintptr_t a, uintptr_t b, uintptr_t c)
#define BFC_PASSED_3 (a, b, c)
#define BFC_WORDS_4 (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
#define BFC_PASSED_4 (a, b, c, d)
#define BFC_WORDS_5 (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)
#define BFC_PASSED_5 (a, b, c, d, e)
#define BFC_WORDS_6 (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
#define BFC_PASSED_6 (a, b, c, d, e, f)
#define BFC_WORDS_8                                                                                \
    (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g,    \
     uintptr_t h)
#define BFC_PASSED_8 (a, b, c, d, e, f, g, h)
#define BFC_WORDS_9                                                                                \
    (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g,    \
     uintptr_t h, uintptr_t i)
#define BFC_PASSED_9 (a, b, c, d, e, f, g, h, i)

/* cuda.h defines these names as macros for the names of newer variants. */
#undef cuFabricCpyBatchAsync
#undef cuGraphExecUpdate
#undef cuGraphNodeSetParams
#undef cuLaunchHostFunc
#undef cuLaunchHostFunc_v2
#undef cuMemBatchDecompressAsync
#undef cuMemDiscardAndPrefetchBatchAsync
#undef cuMemDiscardBatchAsync
#undef cuMemMapArrayAsync
#undef cuMemPrefetchAsync
#undef cuMemPrefetchBatchAsync
#undef cuMemcpy2D
#undef cuMemcpy2DAsync
#undef cuMemcpy2DUnaligned
#undef cuMemcpy3D
#undef cuMemcpy3DAsync
#undef cuMemcpy3DBatchAsync
#undef cuMemcpy3DPeerAsync
#undef cuMemcpy3DWithAttributesAsync
#undef cuMemcpyAtoA
#undef cuMemcpyAtoD
#undef cuMemcpyAtoH
#undef cuMemcpyAtoHAsync
#undef cuMemcpyBatchAsync
#undef cuMemcpyDtoA
#undef cuMemcpyDtoD
#undef cuMemcpyDtoDAsync
#undef cuMemcpyDtoH
#undef cuMemcpyDtoHAsync
#undef cuMemcpyHtoA
#undef cuMemcpyHtoAAsync
#undef cuMemcpyHtoD
#undef cuMemcpyHtoDAsync
#undef cuMemcpyPeerAsync
#undef cuMemcpyWithAttributesAsync
#undef cuMemsetD16
#undef cuMemsetD16Async
#undef cuMemsetD2D16
#undef cuMemsetD2D16Async
#undef cuMemsetD2D32
#undef cuMemsetD2D32Async
#undef cuMemsetD2D8
#undef cuMemsetD2D8Async
#undef cuMemsetD32
#undef cuMemsetD8
#undef cuSignalExternalSemaphoresAsync
#undef cuStreamAddCallback
#undef cuStreamAttachMemAsync
#undef cuStreamBatchMemOp
#undef cuStreamSetAttribute
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
#undef cuTexRefSetAddress
#undef cuTexRefSetAddress2D
#undef cuWaitExternalSemaphoresAsync

#endif
