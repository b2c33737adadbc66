/*
 * Where the contents of sleeping memory are kept: in a file without a name, of host memory
 * (memfd_create) or in a folder of the user's choice. Nobody else can open the file, and it goes
 * with the process, even if that is killed. Parts that are all zero take no space. Not thread-safe.
 */
#ifndef BFC_INTERPOSE_SLEEP_STORE_H
#define BFC_INTERPOSE_SLEEP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns why a file can certainly not be made in this folder, as a number of errno, or 0. Makes
 * nothing. */
int bfc_sleep_store_check(const char *folder);

/* Opens a store for `bytes` bytes in `folder` ("" or "memory": in host memory). Returns its file,
 * or -1 with the reason in `why`. */
int bfc_sleep_store_open(const char *folder, uint64_t bytes, char *why, size_t size);

/* Write or read `size` bytes at the offset `at`. Return 0, or an errno: ENOSPC also if the file
 * takes no more bytes, EIO also if it ends before the bytes to read. */
int bfc_sleep_store_write(int file, uint64_t at, const void *bytes, size_t size);
int bfc_sleep_store_read(int file, uint64_t at, void *bytes, size_t size);

/* Has the system write the file to its disk, which may refuse bytes only then. To be called before
 * the device memory with the contents is given back. Returns 0, or an errno. */
int bfc_sleep_store_flush(int file);

/* Empties the file, so that a forked child that inherited it keeps no contents, and closes it. */
void bfc_sleep_store_close(int file);

#endif
