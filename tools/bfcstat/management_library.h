/*
 * What NVIDIA's management library (libnvidia-ml.so.1), which comes with the driver, tells of the
 * machine's devices. The library is opened at the first call that finds it, and stays open.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_MANAGEMENT_LIBRARY_H
#define BFC_TOOLS_MANAGEMENT_LIBRARY_H

#include <stddef.h>

#include "tools/bfcstat/view/gpu.h"

/* Lists at most `most` devices; returns how many, 0 without the library. Nothing but names and
 * memory is set. */
size_t management_devices(struct gpu *gpus, size_t most);

/* Sets the names and the memory of the part of a device (MIG) that has the UUID gpu->uuid;
 * management_devices does not list such parts. False: there is no such part. */
bool management_part(struct gpu *gpu);

#endif
