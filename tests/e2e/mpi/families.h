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
#include <stdbool.h>
#include <stddef.h>

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4 || defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define FAMILIES_PERSISTENT 1
#else
#define FAMILIES_PERSISTENT 0
#endif

extern int rank, size;
extern const char *folder; /* where the ranks leave what they did */

void count_call(const char *name);
void check(const char *what, long long got, long long expected);

#define CALL(name, ...)                                                                            \
    (count_call("MPI_" #name), expect_success("MPI_" #name, MPI_##name(__VA_ARGS__)))
#define CHECK(what, got, expected) check(what, (long long)(got), (long long)(expected))

void expect_success(const char *name, int result);
/* Whether to poll again, if so after a pause: polling without one, a rank makes more calls than its
 * ring holds while other processes have the processors, and the tracer counts them as dropped. */
bool poll_again(bool done);
/* What rank `r` contributes as element `i`: no two are equal, and none is 0. */
int element(int r, int i);

/* Some files are compiled twice, for MPI 4's large counts too: CALL_N and FUNCTION are of functions
 * that have them, SIZED names what the file gives. */
#ifdef FAMILIES_LARGE
typedef MPI_Count count_t;
typedef MPI_Aint displ_t;
#define SIZED(name)       name##_large
#define CALL_N(name, ...) CALL(name##_c, __VA_ARGS__)
#define FUNCTION(name)    "MPI_" #name "_c", MPI_##name##_c
#else
typedef int count_t;
typedef int displ_t;
#define SIZED(name)       name
#define CALL_N(name, ...) CALL(name, __VA_ARGS__)
#define FUNCTION(name)    "MPI_" #name, MPI_##name
#endif

#define FAMILIES(name)                                                                             \
    void name(MPI_Comm comm);                                                                      \
    void name##_large(MPI_Comm comm)
FAMILIES(collectives_blocking);
FAMILIES(collectives_started);
FAMILIES(collectives_persistent);
FAMILIES(neighbors);
FAMILIES(messages);
FAMILIES(completions);
FAMILIES(windows);
FAMILIES(files);
void communicators(void);

#endif
