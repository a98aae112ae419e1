/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel-names.h - names of device kernels as people write them, of those that compilers make.
 *
 * Only the name itself is read (Itanium C++ ABI, section 5.1): scopes and identifiers up to the
 * first template arguments, which become "<...>"; parameters are left out. What can't be read so
 * (operators, substitutions, local names) keeps the compiler's name.
 */
#ifndef RS_ANALYZER_KERNEL_NAMES_H
#define RS_ANALYZER_KERNEL_NAMES_H

#include <glib.h>

G_BEGIN_DECLS

/* "at::native::gemm<...>" for "_ZN2at6native4gemmILi4EEvT_". Returned: free it. */
gchar *rs_kernel_dup_name(const gchar *name);

G_END_DECLS
#endif
