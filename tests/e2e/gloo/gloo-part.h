/* SPDX-License-Identifier: Apache-2.0 */
/* gloo-part.h - what gloo-program.c calls, linked to it or loaded. */
#ifndef RS_GLOO_PART_H
#define RS_GLOO_PART_H

#ifdef __cplusplus
extern "C"
#endif
    int
    run(int rank, int size, const char *folder, const char *what);

#endif
