/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpirun.h - the command line that starts a program's ranks.
 *
 * Open MPI and the Hydra family (MPICH, Intel MPI) pass environment on in different words, rt-run
 * in Open MPI's; which of them a launcher is, it says itself (--version).
 */
#ifndef RS_ANALYZER_MPIRUN_H
#define RS_ANALYZER_MPIRUN_H

#include <glib.h>

G_BEGIN_DECLS

typedef enum { RS_MPIRUN_HYDRA, RS_MPIRUN_OPEN_MPI, RS_MPIRUN_RT_RUN } RsMpirunKind;

typedef struct {
    gchar **words; /* the launcher, and options of its own */
    RsMpirunKind kind;
} RsMpirun;

/* `launcher`: a program, or a program with options, quoted as in a shell. FALSE and RS_ERROR where
 * there is none such. */
gboolean rs_mpirun_init(RsMpirun *self, const gchar *launcher, GError **error);
void rs_mpirun_release(RsMpirun *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RsMpirun, rs_mpirun_release)

/* Returns the words that start `ranks` of `program`, on `hosts` ("host:slots,...") if not NULL. The
 * settings (NAME, VALUE, ...) reach the ranks, not the launcher. */
gchar **rs_mpirun_line(const RsMpirun *self, guint ranks, const gchar *hosts,
                       const GPtrArray *settings, char **program);

/* Returns what may have kept the launcher from starting `ranks`, and how to give it the option. */
gchar *rs_mpirun_advice(const RsMpirun *self, guint ranks);

G_END_DECLS
#endif
