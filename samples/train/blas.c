/* SPDX-License-Identifier: Apache-2.0 */
#include "blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cblas.h's */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
typedef void gemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k,
                     train_real alpha, const train_real *a, int lda, const train_real *b, int ldb,
                     train_real beta, train_real *c, int ldc);

static gemm_fn *gemm;
static char name[256];

/* A build for POSIX threads reads the variable as it is loaded; one for OpenMP is told afterwards.
 */
static void load(const char *path)
{
    bool said = getenv("OPENBLAS_NUM_THREADS") != NULL;
    if (!said)
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!said)
        unsetenv("OPENBLAS_NUM_THREADS");
    if (!library) {
        snprintf(name, sizeof name, "plain loops (%s)", dlerror());
        return;
    }
    gemm = (gemm_fn *)dlsym(library, sizeof(train_real) == 4 ? "cblas_sgemm" : "cblas_dgemm");
    void (*set_threads)(int) = (void (*)(int))dlsym(library, "openblas_set_num_threads");
    char *(*config)(void) = (char *(*)(void))dlsym(library, "openblas_get_config");
    if (set_threads && !said)
        set_threads(1);
    if (gemm)
        snprintf(name, sizeof name, "%s", config ? config() : path);
    else
        snprintf(name, sizeof name, "plain loops (%s has no cblas_sgemm)", path);
}

const char *blas_name(void)
{
    const char *path = getenv("TRAIN_BLAS");
    if (name[0])
        return name;
    if (path && strcmp(path, "none") == 0)
        snprintf(name, sizeof name, "plain loops (TRAIN_BLAS=none)");
    else
        load(path ? path : "libopenblas.so.0");
    return name;
}

void blas_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, train_real alpha,
               const train_real *a, int lda, const train_real *b, int ldb, train_real beta,
               train_real *c, int ldc)
{
    if (!name[0])
        blas_name();
    if (gemm)
        gemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE,
             transpose_b ? TRANSPOSE : NO_TRANSPOSE, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else
        blas_gemm_plain(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void add_scaled(train_real *restrict to, const train_real *restrict from, train_real factor,
                       int n)
{
    for (int j = 0; j < n; j++)
        to[j] += factor * from[j];
}

static train_real dot(const train_real *a, long along, const train_real *b, int n)
{
    train_real part[16] = {0}, sum = 0;
    int j = 0;
    for (; along == 1 && j + 16 <= n; j += 16)
        for (int p = 0; p < 16; p++)
            part[p] += a[j + p] * b[j + p];
    for (; j < n; j++)
        sum += a[j * along] * b[j];
    for (int p = 0; p < 16; p++)
        sum += part[p];
    return sum;
}

/* Along rows of B, or where it is transposed as dot products; a transposed A costs a stride. */
void blas_gemm_plain(bool transpose_a, bool transpose_b, int m, int n, int k, train_real alpha,
                     const train_real *a, int lda, const train_real *b, int ldb, train_real beta,
                     train_real *c, int ldc)
{
    const long down = transpose_a ? 1 : lda, along = transpose_a ? lda : 1;
    for (int i = 0; i < m; i++, a += down, c += ldc) {
        for (int j = 0; j < n; j++)
            c[j] = beta == 0 ? 0 : beta * c[j];
        for (int j = 0; transpose_b && j < n; j++)
            c[j] += alpha * dot(a, along, b + (long)j * ldb, k);
        for (int p = 0; !transpose_b && p < k; p++)
            add_scaled(c, b + (long)p * ldb, alpha * a[p * along], n);
    }
}
