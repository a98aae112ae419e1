/* SPDX-License-Identifier: Apache-2.0 */
#include "readers.h"

/* A format that is told by what only it has stands before one that is told by little. */
const RsReader *const rs_readers[] = {
    &rs_reader_chrome,
    NULL,
};

const RsReader *rs_reader_find(RsInput *input)
{
    gsize n;
    const gchar *head = rs_input_head(input, &n);
    for (guint i = 0; rs_readers[i]; i++)
        if (rs_readers[i]->knows(head, n))
            return rs_readers[i];
    return NULL;
}
