/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target over the files of its corpus: replay FOLDER. */
#include <glib.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    GDir *dir = argc == 2 ? g_dir_open(argv[1], 0, NULL) : NULL;
    if (!dir) {
        fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return 2;
    }
    const char *name;
    unsigned files = 0;
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(argv[1], name, NULL);
        g_autofree char *data = NULL;
        gsize n;
        if (!g_file_get_contents(path, &data, &n, NULL))
            continue;
        fprintf(stderr, "%s\n", name);
        LLVMFuzzerTestOneInput((const uint8_t *)data, n);
        files++;
    }
    g_dir_close(dir);
    return files > 0 ? 0 : 1;
}
