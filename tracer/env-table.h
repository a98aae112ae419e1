/* SPDX-License-Identifier: Apache-2.0 */
/* env-table.h - what a traced process reads from its environment, for the code and for the README.
 */
#ifndef RS_TRACER_ENV_TABLE_H
#define RS_TRACER_ENV_TABLE_H

struct rs_env_row {
    const char *name, *type, *fallback, *help;
};
extern const struct rs_env_row rs_env_table[]
    __attribute__((visibility("hidden"))); /* ends by NULL */

#endif
