/* SPDX-License-Identifier: Apache-2.0 */
/* readers.h - the readers there are, one a file or a group of files of its name. */
#ifndef RS_READERS_READERS_H
#define RS_READERS_READERS_H

#include "reader.h"

G_BEGIN_DECLS

extern const RsReader rs_reader_chrome; /* chrome.c */

/* The reader that knows the file by its content, NULL none. */
const RsReader *rs_reader_find(RsInput *input);

G_END_DECLS
#endif
