/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target over the files of its corpus, those of folders in it too: replay
 * FOLDER. */
#include <glib.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How many files there were. */
static unsigned replay(const char *path)
{
    unsigned files = 0;
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    if (dir) {
        for (const char *name; (name = g_dir_read_name(dir));) {
            g_autofree char *inner = g_build_filename(path, name, NULL);
            files += replay(inner);
        }
        return files;
    }
    g_autofree char *data = NULL;
    gsize n;
    if (!g_file_get_contents(path, &data, &n, NULL))
        return 0;
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput((const uint8_t *)data, n);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return 2;
    }
    return replay(argv[1]) > 0 ? 0 : 1;
}
