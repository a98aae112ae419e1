/* SPDX-License-Identifier: Apache-2.0 */
/* plugin-host LIBRARY...: loads each into no scope but its own, then runs few_calls of the last: an
 * interpreter with an MPI module does it so. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *last = NULL;
    for (int i = 1; i < argc; i++)
        if (!(last = dlopen(argv[i], RTLD_LAZY | RTLD_LOCAL))) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    int (*few_calls)(int *, char ***) =
        last ? (int (*)(int *, char ***))dlsym(last, "few_calls") : NULL;
    return few_calls ? few_calls(&argc, &argv) : 2;
}
