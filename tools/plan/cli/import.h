/*
 * What compilers wrote, through the program bfcplan-import: models (.onnx) as a dataflow graph in
 * JSON, XLA's dumped buffer assignment as a CSV of lifetimes.
 */
#ifndef BFC_PLAN_IMPORT_H
#define BFC_PLAN_IMPORT_H

#include <stdbool.h>

#include "planner/common/error.h"
#include "planner/common/text.h"

enum import_kind { IMPORT_NONE, IMPORT_GRAPH, IMPORT_LIFETIMES };

/* By the file's name. */
enum import_kind import_kind_of(const char *path);

/*
 * Runs bfcplan-import, which is looked for beside this program and then on PATH. `dimensions` is
 * its --dims, or NULL. False: the error, which is empty when bfcplan-import has told it itself.
 */
bool import_read(struct file_text *text, const char *path, const char *dimensions,
                 struct plan_error *error);

#endif
