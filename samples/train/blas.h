/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blas.h - matrix products, by OpenBLAS where it is installed, else by plain loops.
 *
 * OpenBLAS is loaded at the first product, not linked: a program that makes none starts without its
 * 35 MB, and its threads are settled before it makes any. It gets one, as each rank has its core
 * (or shares it) and a thread that waits by spinning would blur which rank is slow;
 * OPENBLAS_NUM_THREADS says otherwise. TRAIN_BLAS is a path to take in place of libopenblas.so.0,
 * or "none". Threads: the first call from one alone.
 */
#ifndef TRAIN_BLAS_H
#define TRAIN_BLAS_H

#include <stdbool.h>

#include "tensor.h"

/* Row-major: C (m x n) = alpha * op(A) * op(B) + beta * C, where op(A) is m x k and op(B) k x n,
 * each transposed where it is said; a row of a matrix as it is stored begins lda (ldb, ldc) after
 * the one before. beta 0 doesn't read C. */
void blas_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, train_real alpha,
               const train_real *a, int lda, const train_real *b, int ldb, train_real beta,
               train_real *c, int ldc);
/* The same by loops. */
void blas_gemm_plain(bool transpose_a, bool transpose_b, int m, int n, int k, train_real alpha,
                     const train_real *a, int lda, const train_real *b, int ldb, train_real beta,
                     train_real *c, int ldc);
/* What blas_gemm uses: the library's own words, or "plain loops" and why. */
const char *blas_name(void);

#endif
