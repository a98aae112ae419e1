/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-nvtx.h - a small NVTX client: marks for a profiler, where one is attached.
 *
 * Model: the tool is the library that NVTX_INJECTION64_PATH names; it is asked once, at the first
 * call here, by NVTX's binary interface (its export tables CORE and CORE2), so that the vendor's
 * header isn't needed. Without a tool a call is one test of a pointer.
 * Threads: everything from any thread; push and pop nest per thread; a range that was started may
 * end on another one. Errors: none are reported.
 */
#ifndef RT_NVTX_H
#define RT_NVTX_H

#include <stdint.h>

/* A named range of this thread, in the default domain. */
void rt_nvtx_push(const char *name);
void rt_nvtx_pop(void);

/* Start/end ranges in a domain of their own. NULL without a tool; NULL is good for every call. */
struct rt_nvtx_domain;
struct rt_nvtx_domain *rt_nvtx_domain_new(const char *name);
void rt_nvtx_domain_free(struct rt_nvtx_domain *domain);

/* The number of the category of that name, which the tool learns; 0 without a tool. */
uint32_t rt_nvtx_category(struct rt_nvtx_domain *domain, const char *name);
/* Returned: the range's id, 0 without a tool. */
uint64_t rt_nvtx_start(struct rt_nvtx_domain *domain, const char *message, uint32_t category);
void rt_nvtx_end(struct rt_nvtx_domain *domain, uint64_t range);

/* Names the calling thread. */
void rt_nvtx_name_thread(const char *name);

#endif
