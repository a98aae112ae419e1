/* SPDX-License-Identifier: Apache-2.0 */
/* gloo-program RANK SIZE FOLDER WHAT [MODULE]: runs gloo-part.cc, the linked one, or MODULE's,
 * which it loads locally as Python does. Without MODULE only where it is linked. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "gloo-part.h"

typedef int run_fn(int, int, const char *, const char *);

static run_fn *loaded(const char *module)
{
    void *handle = dlopen(module, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    return handle ? (run_fn *)dlsym(handle, "run") : NULL;
}

int main(int argc, char **argv)
{
#ifdef LINKED
    run_fn *f = argc == 5 ? run : loaded(argv[5]);
#else
    run_fn *f = argc > 5 ? loaded(argv[5]) : NULL;
#endif
    return f ? f(atoi(argv[1]), atoi(argv[2]), argv[3], argv[4]) : 2;
}
