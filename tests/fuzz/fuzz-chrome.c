/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz-chrome.c - any bytes as a Chrome trace: read, matched, freed, without a crash or an endless
 * loop. Packed bytes are unpacked as in a file. Links to libFuzzer, or to replay.c.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "readers/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const RsReadOptions options = {.rank = -1};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    g_autofree gchar *path = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autoptr(RsBuilder) b = rs_builder_new();
    gboolean any = FALSE;
    for (guint i = 0; i < 2; i++) { /* twice: two files that claim the same rank and groups */
        g_autoptr(RsInput) input = rs_input_open(path, NULL);
        RsBuilderMark mark = rs_builder_mark(b);
        if (input && rs_reader_chrome.read(b, input, &options, NULL))
            any = TRUE;
        else
            rs_builder_take_back(b, &mark);
    }
    if (any)
        rs_model_free(rs_builder_finish(g_steal_pointer(&b), RS_FINISH_ALL));
    close(fd);
    return 0;
}
