// What hypre refers to and has only with cuRAND or cuSPARSE. Nothing that `ij` is asked for here
// calls it.
#include <stdio.h>
#include <stdlib.h>

static int left_out(const char *name) {
    fprintf(stderr, "hypre was built without %s\n", name);
    abort();
}

int hypre_CurandUniform(void);
int hypre_CurandUniform(void) {
    return left_out("cuRAND");
}

int hypre_CSRMatrixILU0(void);
int hypre_CSRMatrixILU0(void) {
    return left_out("cuSPARSE");
}
