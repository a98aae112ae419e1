/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - NVTX's texts: messages, registered strings, domains and their categories.
 *
 * Model: texts that the program registers are kept here until the first record needs them, because
 * a program that never calls MPI or NCCL must leave nothing. From then on a text costs one lookup:
 * registered ones by their own field, others by a per-thread cache of what they hash to.
 * Ids are RS_DEF_STRING ids of the capture; after a fork the child's capture has its own, so ids
 * are kept with the generation they belong to.
 * Threads: any. Nothing is freed: handles live as long as the process.
 */
#ifndef RS_TRACER_NVTX_NAMES_H
#define RS_TRACER_NVTX_NAMES_H

#include <wchar.h>

#include "core.h"

#define RS_NVTX_TEXT_MAX 1024 /* bytes of a text that are kept */

struct rs_nvtx_text;   /* a registered string */
struct rs_nvtx_domain; /* NULL is the default domain */

/* A new handle for `text` (may be NULL: ""); NULL where memory is short. */
struct rs_nvtx_text *rs_nvtx_text_new(const char *text) RS_HIDDEN;
struct rs_nvtx_domain *rs_nvtx_domain_new(const char *name) RS_HIDDEN;
/* Handles come from the program and may be anything: unknown ones count as no text, no domain. */
uint32_t rs_nvtx_text_id(struct rs_nvtx_text *text) RS_HIDDEN;
const char *rs_nvtx_text_of(const struct rs_nvtx_text *text) RS_HIDDEN; /* NULL for none */
uint32_t rs_nvtx_domain_id(struct rs_nvtx_domain *domain) RS_HIDDEN;
/* The id of a text given at the call; 0 for NULL and "". */
uint32_t rs_nvtx_message_id(const char *message) RS_HIDDEN;
void rs_nvtx_category_name(struct rs_nvtx_domain *domain, uint32_t category,
                           const char *name) RS_HIDDEN;
/* The id of a category's name, of its number as text where it has none; 0 for category 0. */
uint32_t rs_nvtx_category_id(struct rs_nvtx_domain *domain, uint32_t category) RS_HIDDEN;

/* UTF-32 to UTF-8, cut at a whole character where `ret` (RS_NVTX_TEXT_MAX bytes) ends. */
const char *rs_nvtx_from_wide(const wchar_t *wide, char *ret) RS_HIDDEN;

/* The child of a fork calls this: every id was its parent's. */
void rs_nvtx_names_forget(void) RS_HIDDEN;

#endif
