/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-post.h - messages of any length between any two ranks, over their links, with tag 0.
 *
 * What can't go out at once is kept, and goes out in later calls. Nothing waits but flush. Threads:
 * one at a time. Errors: -ECONNRESET a rank has closed, -EPROTO what came is no message, -EMSGSIZE,
 * -ENOMEM.
 */
#ifndef RT_POST_H
#define RT_POST_H

#include <stdbool.h>

#include "rt-links.h"
#include "rt-message.h"

#define RT_POST_TAG 0
#define RT_POST_MAX ((uint64_t)1 << 30) /* bytes of a message */

struct rt_post;

struct rt_post *rt_post_new(struct rt_links *links); /* NULL: errno */
void rt_post_free(struct rt_post *p);                /* NULL-safe */
int rt_post_send(struct rt_post *p, int to, const struct rt_bytes *message);
int rt_post_flush(struct rt_post *p);
bool rt_post_keeps(const struct rt_post *p); /* something that has not gone out */
/* 1 and a message, whose data the caller frees; 0 none has come. */
int rt_post_receive(struct rt_post *p, int *ret_from, struct rt_bytes *ret);

#endif
