/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program-file.h - what a program's file says before it is run: which libraries it asks for, and
 * whether a loader will be there to preload anything.
 *
 * 64-bit ELF files of this machine's byte order; of scripts and all else nothing is known.
 */
#ifndef RS_ANALYZER_PROGRAM_FILE_H
#define RS_ANALYZER_PROGRAM_FILE_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    gboolean is_static; /* no loader: nothing can be preloaded */
    gchar *asan;        /* the address sanitizer's library that it asks for by name, NULL none */
} RsProgramFile;

/* `program`: as execvp finds it. What can't be read is not known: all FALSE and NULL. */
void rs_program_file_read(RsProgramFile *ret, const gchar *program);
void rs_program_file_clear(RsProgramFile *file);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RsProgramFile, rs_program_file_clear)

G_END_DECLS
#endif
