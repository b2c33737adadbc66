/* Whether the process that made a file still runs. No state, no allocation; thread-safe. */
#ifndef BFC_SEGMENT_PROCESS_LIFE_H
#define BFC_SEGMENT_PROCESS_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* When a process of this pid namespace began, in clock ticks after boot (field 22 of
 * /proc/PID/stat); 0: unknown. */
uint64_t bfc_process_start_time(int32_t pid);

/* Inode number of this process's time namespace; 0: unknown. Start times that were read in
 * different time namespaces cannot be compared. */
uint64_t bfc_time_namespace(void);

/*
 * Whether the process of this pid namespace with this pid and start time is gone: the pid is free,
 * or belongs to a process with another start time, or to a zombie. A start time of 0 is not
 * compared. False in case of doubt.
 */
bool bfc_process_is_gone(int32_t pid, uint64_t start_time);

#endif
