/* As much of cuBLAS and NCCL as the clients use: a product is its first factor, a sum its summand.
 */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    *handle = (cublasHandle_t)handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k, const float *alpha,
                              const float *a, int lda, const float *b, int ldb, const float *beta,
                              float *c, int ldc) {
    (void)handle, (void)transa, (void)transb, (void)k, (void)alpha, (void)lda, (void)b, (void)ldb,
        (void)beta, (void)ldc;
    size_t bytes = (size_t)m * (size_t)n * sizeof *a;
    return cudaMemcpy(c, a, bytes, cudaMemcpyDeviceToDevice) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                             : CUBLAS_STATUS_SUCCESS;
}

ncclResult_t ncclCommInitAll(ncclComm_t *communicators, int count, const int *devices) {
    (void)devices;
    for (int i = 0; i < count; i++)
        communicators[i] = (ncclComm_t)&communicators[i];
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    return communicator ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclGroupStart(void) {
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
    (void)count, (void)type, (void)operation, (void)communicator, (void)stream;
    return from == to ? ncclSuccess : ncclInvalidArgument;
}
