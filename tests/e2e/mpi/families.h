/* SPDX-License-Identifier: Apache-2.0 */
/*
 * families.h - a program that makes every wrapped MPI call and knows what each must give.
 *
 * CALL counts a call under its name and fails the program on an error; CHECK compares one number.
 * Both go to the rank's own file, so that a run under the tracer can be compared with one without.
 */
#ifndef TESTS_FAMILIES_H
#define TESTS_FAMILIES_H

#include <mpi.h>
#include <stddef.h>

extern int rank, size;

void count_call(const char *name);
void check(const char *what, long long got, long long expected);

#define CALL(name, ...)                                                                            \
    (count_call("MPI_" #name), expect_success("MPI_" #name, MPI_##name(__VA_ARGS__)))
#define CHECK(what, got, expected) check(what, (long long)(got), (long long)(expected))

void expect_success(const char *name, int result);
/* What rank `r` contributes as element `i`: no two are equal, and none is 0. */
int element(int r, int i);

void collectives_blocking(MPI_Comm comm);
void collectives_started(MPI_Comm comm);
void neighbors(void);
void messages(MPI_Comm comm);
void completions(MPI_Comm comm);
void communicators(void);

#endif
