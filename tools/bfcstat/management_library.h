/*
 * What NVIDIA's management library (libnvidia-ml.so.1), which comes with the driver, tells of the
 * machine's devices: their names and memory. The library is opened at the first call that finds it,
 * and stays open.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_MANAGEMENT_LIBRARY_H
#define BFC_TOOLS_MANAGEMENT_LIBRARY_H

#include <stddef.h>

#include "tools/bfcstat/view/gpu.h"

/* Lists at most `most` devices, and returns how many; 0 if the library is not there. Of each struct
 * gpu it sets the number, the names and the memory. */
size_t management_devices(struct gpu *gpus, size_t most);

/* Sets the memory of gpu, a part of a device (MIG instance) that is identified by gpu->uuid;
 * management_devices lists only whole devices. False: there is no library, or it knows no such part
 * or not the memory of the part. */
bool management_part(struct gpu *gpu);

#endif
