// A library that looks like CUPTI: profilers load it to see a runtime's calls.
int cuptiSubscribe(void);

int cuptiSubscribe(void) {
    return 0;
}
