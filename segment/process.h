/* Whether the process that made a file still runs. No state, no allocation; thread-safe. */
#ifndef BFC_SEGMENT_PROCESS_H
#define BFC_SEGMENT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* When a process of this pid namespace began: clock ticks after boot, field 22 of /proc/PID/stat;
 * 0: that cannot be told. */
uint64_t bfc_process_start_time(int32_t pid);

/* This process's time namespace (inode number), by whose clock start times are told; 0: unknown. */
uint64_t bfc_time_namespace(void);

/*
 * Whether the process of this pid namespace that began then is gone: nobody has its pid, or one
 * that began at another time, or nobody but its parent has waited for it yet. A start time of 0 is
 * not compared. In doubt it is not gone.
 */
bool bfc_process_is_gone(int32_t pid, uint64_t start_time);

#endif
