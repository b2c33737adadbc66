/* Two threads free one pointer at the same moment: one succeeds, the other one gets an error [F],
 * and the block is not handed out twice afterwards. */
#include "tests/conformance/gpu.h"

enum { ROUNDS = 300 };

static pthread_barrier_t barrier;
static void *shared;
static int codes[2];

static void *free_shared(void *argument) {
    int *code = argument;
    use_device(0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        *code = release(shared);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    unsigned once = 0, other = 0, doubled = 0;
    use_device(0);
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, free_shared, &codes[i]);
    for (int i = 0; i < ROUNDS; i++) {
        shared = new_block(1000);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        once += codes[0] + codes[1] == 1 && codes[0] * codes[1] == 0;
        other += !(codes[0] + codes[1] == 1 && codes[0] * codes[1] == 0);
        void *first = new_block(1000), *second = new_block(1000);
        doubled += first == second;
        MUST(release(first));
        MUST(release(second));
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("freed once: %u, otherwise: %u, handed out twice: %u\n", once, other, doubled);
    return 0;
}
