/*
 * A ring of processes that hand a buffer on through CUDA IPC: each writes into its right
 * neighbour's device memory, and after as many steps as there are processes everybody holds again
 * what it began with.
 *
 *     mpicc -I/usr/local/cuda/include ring.c -L/usr/local/cuda/lib64 -lcudart -o ring
 *     mpirun -n 2 ./ring
 *     mpirun -n 2 -x LD_PRELOAD=/path/to/libbfcpreload.so ./ring
 *
 * Process i uses device i, or shares the devices if there are fewer. Any MPI will do: it only
 * carries the handles.
 */
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 100001 };

static void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, #call)

static unsigned char byte_of(int rank, size_t at) {
    return (unsigned char)(31 * (size_t)rank + at % 251);
}

static void fill(void *buffer, int rank) {
    static unsigned char bytes[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = byte_of(rank, i);
    CHECK(cudaMemcpy(buffer, bytes, BYTES, cudaMemcpyHostToDevice));
}

static size_t count_wrong(const void *buffer, int rank) {
    static unsigned char bytes[BYTES];
    size_t wrong = 0;
    CHECK(cudaMemcpy(bytes, buffer, BYTES, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < BYTES; i++)
        wrong += bytes[i] != byte_of(rank, i);
    return wrong;
}

/* The right neighbour's inbox, as this process sees it. */
static void *open_neighbour(void *inbox, int rank, int ranks) {
    cudaIpcMemHandle_t own, right;
    void *pointer = NULL;
    CHECK(cudaIpcGetMemHandle(&own, inbox));
    MPI_Sendrecv(&own, sizeof own, MPI_BYTE, (rank + ranks - 1) % ranks, 0, &right, sizeof right,
                 MPI_BYTE, (rank + 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(cudaIpcOpenMemHandle(&pointer, right, cudaIpcMemLazyEnablePeerAccess));
    return pointer;
}

static void step(void *neighbour, void *inbox, void *outbox) {
    CHECK(cudaMemcpy(neighbour, outbox, BYTES, cudaMemcpyDeviceToDevice));
    CHECK(cudaDeviceSynchronize());
    MPI_Barrier(MPI_COMM_WORLD); /* everybody's inbox is full */
    CHECK(cudaMemcpy(outbox, inbox, BYTES, cudaMemcpyDeviceToDevice));
    CHECK(cudaDeviceSynchronize());
    MPI_Barrier(MPI_COMM_WORLD); /* everybody's inbox may be written again */
}

int main(int count, char **arguments) {
    int rank, ranks, devices;
    void *inbox, *outbox;
    size_t wrong = 0;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaSetDevice(rank % devices));
    CHECK(cudaMalloc(&outbox, BYTES));
    CHECK(cudaMalloc(&inbox, BYTES));
    fill(outbox, rank);
    void *neighbour = open_neighbour(inbox, rank, ranks);
    for (int i = 1; i <= ranks; i++) {
        step(neighbour, inbox, outbox);
        wrong += count_wrong(outbox, (rank + ranks * ranks - i) % ranks);
    }
    printf("process %d of %d: %zu wrong bytes in %d steps\n", rank, ranks, wrong, ranks);
    CHECK(cudaIpcCloseMemHandle(neighbour));
    MPI_Barrier(MPI_COMM_WORLD); /* nobody frees what is still open elsewhere */
    CHECK(cudaFree(inbox));
    CHECK(cudaFree(outbox));
    MPI_Finalize();
    return wrong != 0;
}
