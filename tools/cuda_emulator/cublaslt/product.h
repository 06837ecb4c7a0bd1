// What the stand-in for cuBLASLt passes to its kernel: d = activation(alpha op(a) op(b) + beta c + bias), matrices by columns.
#pragma once

struct Product {
    const void *a, *b, *c, *bias;
    void* d;
    char* workspace;
    long long workspace_size, m, n, k, batch, lda, ldb, ldc, ldd, batch_a, batch_b, batch_c, batch_d;
    int transpose_a, transpose_b, type_ab, type_cd, compute, scale, activation;
    double alpha[2], beta[2];  // the bytes of numbers of the scale type
};
