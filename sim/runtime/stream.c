// Streams, events and host functions of the runtime API: the driver's, under other names.
#include "sim/runtime/runtime.h"

RT_CALL(cudaStreamCreate, (cudaStream_t * stream), rt_code(rt_driver.cuStreamCreate(stream, 0)))
RT_CALL(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags),
        rt_code(rt_driver.cuStreamCreate(stream, flags)))
RT_CALL(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
        rt_code(rt_driver.cuStreamCreateWithPriority(stream, flags, priority)))
RT_CALL(cudaStreamDestroy, (cudaStream_t stream), rt_code(rt_driver.cuStreamDestroy(stream)))
RT_PAIR(cudaStreamSynchronize, cudaStreamSynchronize_ptsz, (cudaStream_t stream),
        rt_code(rt_driver.cuStreamSynchronize[pt](stream)))
RT_PAIR(cudaStreamQuery, cudaStreamQuery_ptsz, (cudaStream_t stream),
        rt_code(rt_driver.cuStreamQuery[pt](stream)))
RT_PAIR(cudaStreamGetFlags, cudaStreamGetFlags_ptsz, (cudaStream_t stream, unsigned *flags),
        rt_code(rt_driver.cuStreamGetFlags[pt](stream, flags)))
RT_PAIR(cudaStreamGetPriority, cudaStreamGetPriority_ptsz, (cudaStream_t stream, int *priority),
        rt_code(rt_driver.cuStreamGetPriority[pt](stream, priority)))
RT_PAIR(cudaStreamGetId, cudaStreamGetId_ptsz, (cudaStream_t stream, unsigned long long *id),
        rt_code(rt_driver.cuStreamGetId[pt](stream, id)))
RT_PAIR(cudaStreamGetDevice, cudaStreamGetDevice_ptsz, (cudaStream_t stream, int *device),
        rt_code(rt_driver.cuStreamGetDevice[pt](stream, device)))
RT_PAIR(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz,
        (cudaStream_t stream, cudaEvent_t event, unsigned flags),
        rt_code(rt_driver.cuStreamWaitEvent[pt](stream, event, flags)))
RT_PAIR(cudaStreamAddCallback, cudaStreamAddCallback_ptsz,
        (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags),
        rt_code(rt_driver.cuStreamAddCallback[pt](stream,
                                                  (CUstreamCallback)(void (*)(void))callback, data,
                                                  flags)))
RT_PAIR(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz,
        (cudaStream_t stream, cudaHostFn_t function, void *data),
        rt_code(rt_driver.cuLaunchHostFunc[pt](stream, function, data)))

RT_CALL(cudaEventCreate, (cudaEvent_t * event), rt_code(rt_driver.cuEventCreate(event, 0)))
RT_CALL(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags),
        rt_code(rt_driver.cuEventCreate(event, flags)))
RT_CALL(cudaEventDestroy, (cudaEvent_t event), rt_code(rt_driver.cuEventDestroy(event)))
RT_CALL(cudaEventQuery, (cudaEvent_t event), rt_code(rt_driver.cuEventQuery(event)))
RT_CALL(cudaEventSynchronize, (cudaEvent_t event), rt_code(rt_driver.cuEventSynchronize(event)))
RT_CALL(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
        rt_code(rt_driver.cuEventElapsedTime(ms, start, end)))
RT_PAIR(cudaEventRecord, cudaEventRecord_ptsz, (cudaEvent_t event, cudaStream_t stream),
        rt_code(rt_driver.cuEventRecord[pt](event, stream)))
RT_PAIR(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz,
        (cudaEvent_t event, cudaStream_t stream, unsigned flags),
        rt_code(rt_driver.cuEventRecordWithFlags[pt](event, stream, flags)))
