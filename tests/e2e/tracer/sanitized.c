/* SPDX-License-Identifier: Apache-2.0 */
/* sanitized fine|overflow|leak: a program that is built with the address sanitizer. */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *volatile kept;

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "fine";
    volatile size_t n = 8;
    for (int i = 0; i < 20; i++) {
        ncclGroupStart();
        ncclGroupEnd();
    }
    kept = malloc(n);
    if (!kept)
        return 2;
    if (!strcmp(way, "overflow"))
        kept[n] = 1;
    if (strcmp(way, "leak") != 0)
        free(kept);
    kept = NULL;
    printf("at the end of %s\n", way);
    return 0;
}
