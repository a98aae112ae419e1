/* SPDX-License-Identifier: Apache-2.0 */
#include "fortran.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* Of mpi_f08's library alone. */
#define TELLTALE "mpi_type_free_f08_"

static bool holds_telltale(const Dl_info *caller)
{
    void *object = dlopen(caller->dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = object ? dlsym(object, TELLTALE) : NULL;
    Dl_info owner;
    bool holds = symbol && dladdr(symbol, &owner) && owner.dli_fbase == caller->dli_fbase;
    if (object)
        dlclose(object);
    return holds;
}

/* The last answers: a program calls from few objects. */
static bool is_fortran(const Dl_info *caller)
{
    static void *yes, *no;
    if (caller->dli_fbase == __atomic_load_n(&yes, __ATOMIC_ACQUIRE))
        return true;
    if (caller->dli_fbase == __atomic_load_n(&no, __ATOMIC_ACQUIRE))
        return false;
    bool holds = holds_telltale(caller);
    __atomic_store_n(holds ? &yes : &no, caller->dli_fbase, __ATOMIC_RELEASE);
    return holds;
}

/* The program's calls come from exported functions named for it; the descriptors' code has no name.
 */
bool rs_mpi_is_own_type_of_fortran(void *caller)
{
    int saved = errno;
    Dl_info at;
    bool own = dladdr(caller, &at) && is_fortran(&at) &&
               (!at.dli_sname || !strcasestr(at.dli_sname, "type_free"));
    errno = saved;
    return own;
}
