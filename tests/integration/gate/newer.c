/* A plug-in that is linked to a call which is newer than the library's tables. */
extern int cuStreamBeginUnheardOfCapture();

__attribute__((visibility("default"))) void *newer_call(void);
void *newer_call(void) {
    return __extension__(void *) cuStreamBeginUnheardOfCapture;
}
