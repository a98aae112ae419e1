/* SPDX-License-Identifier: Apache-2.0 */
/* plugin-host [--deep] LIBRARY...: loads each into no scope but its own, then runs few_calls of the
 * last: an interpreter with an MPI module does it so. --deep: each finds its own libraries before
 * those of the program. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    void *last = NULL;
    int deep = argc > 1 && strcmp(argv[1], "--deep") == 0 ? RTLD_DEEPBIND : 0;
    for (int i = deep ? 2 : 1; i < argc; i++)
        if (!(last = dlopen(argv[i], RTLD_LAZY | RTLD_LOCAL | deep))) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    int (*few_calls)(int *, char ***) =
        last ? (int (*)(int *, char ***))dlsym(last, "few_calls") : NULL;
    return few_calls ? few_calls(&argc, &argv) : 2;
}
