/* SPDX-License-Identifier: Apache-2.0 */
/* Products by OpenBLAS, where it is, and by loops, against the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blas.h"

#define MAX 40

typedef void product(bool, bool, int, int, int, train_real, const train_real *, int,
                     const train_real *, int, train_real, train_real *, int);

static void check_one(product *gemm, int m, int n, int k, int transposed, train_real beta)
{
    static train_real a[MAX * MAX], b[MAX * MAX], c[MAX * MAX], before[MAX * MAX];
    const bool ta = transposed & 1, tb = transposed & 2;
    const int lda = (ta ? m : k) + 1, ldb = (tb ? k : n) + 2, ldc = n + 3;
    for (int i = 0; i < MAX * MAX; i++) {
        a[i] = (train_real)(i * 7 % 23) / 23 - (train_real)0.5;
        b[i] = (train_real)(i * 5 % 19) / 19 - (train_real)0.5;
        before[i] = beta == 0 ? (train_real)NAN : (train_real)(i % 3); /* 0 doesn't read it */
    }
    memcpy(c, before, sizeof c);
    gemm(ta, tb, m, n, k, 2, a, lda, b, ldb, beta, c, ldc);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < ldc; j++) {
            double sum = 0;
            for (int p = 0; p < k && j < n; p++)
                sum += (double)a[ta ? p * lda + i : i * lda + p] *
                       (double)b[tb ? j * ldb + p : p * ldb + j];
            double old = (double)before[i * ldc + j];
            double expected = j < n ? 2 * sum + (beta == 0 ? 0 : (double)beta * old) : old;
            double got = (double)c[i * ldc + j];
            if (!(fabs(got - expected) < 1e-4) && !(isnan(got) && isnan(expected)))
                fail_msg("%dx%dx%d, transposed %d: [%d,%d] %g, expected %g", m, n, k, transposed, i,
                         j, got, expected);
        }
}

static void check(product *gemm)
{
    static const int sizes[] = {1, 2, 16, 17, 33};
    for (int i = 0; i < 125; i++)
        for (int transposed = 0; transposed < 4; transposed++)
            check_one(gemm, sizes[i % 5], sizes[i / 5 % 5], sizes[i / 25], transposed, i % 3);
}

static void loops_are_right(void **state)
{
    check(blas_gemm_plain);
}

static void library_is_right(void **state)
{
    printf("by %s\n", blas_name());
    check(blas_gemm);
    assert_null(getenv("OPENBLAS_NUM_THREADS"));
}

int main(void)
{
    unsetenv("OPENBLAS_NUM_THREADS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_are_right),
        cmocka_unit_test(library_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
