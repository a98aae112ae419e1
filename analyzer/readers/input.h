/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - the bytes of a file that another tool wrote, unpacked as they are read.
 *
 * gzip (several members, also cut) and zstd are told by content, not by name. What is damaged ends
 * the bytes where the damage is: the reader gets what came before, and rs_input_note says why.
 * Memory: one block that is used again, whatever the file's size: nothing is mapped, so a file that
 * shrinks while it is read only ends early. One thread at a time.
 */
#ifndef RS_READERS_INPUT_H
#define RS_READERS_INPUT_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct _RsInput RsInput;

/* NULL and RS_ERROR_UNREADABLE: nothing there, or not a regular file. */
RsInput *rs_input_open(const gchar *path, GError **error);
void rs_input_free(RsInput *input);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RsInput, rs_input_free)

const gchar *rs_input_path(const RsInput *input);
/* The next block of unpacked bytes, NULL at the end; valid until the next call. Blocks are as they
 * come: a line or a number may begin in one and end in the next. */
const gchar *rs_input_next(RsInput *input, gsize *ret_bytes);
/* Back to the first byte. */
void rs_input_rewind(RsInput *input);
/* The first bytes, up to RS_INPUT_HEAD of them, without moving; zero bytes follow. */
#define RS_INPUT_HEAD (64u << 10)
const gchar *rs_input_head(RsInput *input, gsize *ret_bytes);
/* Share of the file that was read, 0 to 1. */
gdouble rs_input_share(const RsInput *input);
/* NULL, or why the bytes ended before the file's author meant them to, and where in the file. */
const gchar *rs_input_note(const RsInput *input);
/* NULL, or why what was packed gives nothing that a reader could know. Borrowed. */
const gchar *rs_input_nothing(RsInput *input);

G_END_DECLS
#endif
