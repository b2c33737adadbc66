/* Reads files of compilers by running the program bfcplan-import: models (.onnx) as a dataflow
 * graph in JSON, and XLA's dumped buffer assignment as a CSV of lifetimes. */
#ifndef BFC_PLAN_IMPORT_H
#define BFC_PLAN_IMPORT_H

#include <stdbool.h>

#include "planner/common/error.h"
#include "planner/common/text.h"

enum import_kind { IMPORT_NONE, IMPORT_GRAPH, IMPORT_LIFETIMES };

/* Tells from the end of a file's name what bfcplan-import makes of the file: a graph or lifetimes;
 * IMPORT_NONE: it does not read such files. */
enum import_kind import_kind_of(const char *path);

/*
 * Runs bfcplan-import, from the folder of this program or from PATH, on the file at `path`, and
 * reads its output into `text`. `dimensions` is the value of its option --dims, or NULL. False:
 * `error` says why; it is empty if bfcplan-import has printed the reason itself.
 */
bool import_read(struct file_text *text, const char *path, const char *dimensions,
                 struct plan_error *error);

#endif
